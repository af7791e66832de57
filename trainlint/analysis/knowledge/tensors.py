"""Functions and methods on tensors: which squash, which only reshape, which cut the graph."""

from __future__ import annotations

ACTIVATION_FUNCTIONS = {
    "torch.softmax": "softmax",
    "torch.nn.functional.softmax": "softmax",
    "torch.special.softmax": "softmax",
    "torch.log_softmax": "log_softmax",
    "torch.nn.functional.log_softmax": "log_softmax",
    "torch.special.log_softmax": "log_softmax",
    "torch.sigmoid": "sigmoid",
    "torch.nn.functional.sigmoid": "sigmoid",
    "torch.special.expit": "sigmoid",
    "torch.nn.functional.logsigmoid": "log_sigmoid",
    "torch.tanh": "tanh",
    "torch.nn.functional.tanh": "tanh",
    "torch.nn.functional.linear": "linear",
}
ACTIVATION_MODULES = {
    "torch.nn.Softmax": "softmax",
    "torch.nn.Softmax2d": "softmax",
    "torch.nn.LogSoftmax": "log_softmax",
    "torch.nn.Sigmoid": "sigmoid",
    "torch.nn.LogSigmoid": "log_sigmoid",
    "torch.nn.Tanh": "tanh",
    **dict.fromkeys(
        (
            "torch.nn.Linear", "torch.nn.LazyLinear", "torch.nn.Bilinear", "torch.nn.Conv1d",
            "torch.nn.Conv2d", "torch.nn.Conv3d",
        ),
        "linear",
    ),
}
ACTIVATION_METHODS = {
    "softmax": "softmax",
    "log_softmax": "log_softmax",
    "sigmoid": "sigmoid",
    "sigmoid_": "sigmoid",
    "tanh": "tanh",
    "tanh_": "tanh",
}
NEW_DATA_FUNCTIONS = frozenset(
    {
        "torch.randn_like", "torch.rand_like", "torch.zeros_like", "torch.ones_like",
        "torch.empty_like", "torch.full_like", "torch.randint_like",
    }
)  # fmt: skip
DIFFERENTIATING_FUNCTIONS = frozenset(
    {
        "torch.autograd.grad", "torch.func.grad", "torch.func.grad_and_value", "torch.func.vjp",
        "torch.func.jacrev", "torch.func.jacfwd", "torch.autograd.functional.jacobian",
        "torch.autograd.functional.hessian", "torch.autograd.functional.vjp", "functorch.grad",
    }
)  # fmt: skip
LOG_OF = {"softmax": "log_softmax", "sigmoid": "log_sigmoid"}
LOG_FUNCTIONS = frozenset({"torch.log", "torch.log_"})

KEEPS_ACTIVATION_METHODS = frozenset(
    {
        "view", "reshape", "squeeze", "unsqueeze", "permute", "transpose", "flatten", "contiguous",
        "float", "double", "half", "bfloat16", "to", "cuda", "cpu", "type", "type_as", "clone",
        "t", "squeeze_", "unsqueeze_", "view_as", "reshape_as", "expand", "expand_as", "chunk",
        "split", "clamp", "clamp_", "clip", "movedim", "swapaxes", "unflatten", "unbind",
        "requires_grad_", "retain_grad", "masked_select", "index_select", "select", "narrow",
        "detach", "detach_",
    }
)  # fmt: skip
KEEPS_ACTIVATION_FUNCTIONS = frozenset(
    {
        "torch.squeeze", "torch.unsqueeze", "torch.flatten", "torch.reshape", "torch.permute",
        "torch.transpose", "torch.clamp", "torch.clip", "torch.cat", "torch.concat", "torch.stack",
        "torch.chunk", "torch.split", "torch.movedim", "torch.index_select", "torch.masked_select",
        "torch.Tensor.view", "torch.autograd.Variable",
    }
)  # fmt: skip
CUTS_GRAPH_METHODS = frozenset(
    {"detach", "detach_", "item", "tolist", "numpy", "argmax", "argmin", "data_ptr", "size", "dim"}
)
PURE_METHODS = frozenset(
    {
        "sum", "mean", "max", "min", "pow", "sqrt", "exp", "log", "abs", "add", "add_", "sub", "mul",
        "mul_", "div", "div_", "matmul", "mm", "bmm", "norm", "eq", "ne", "gt", "lt", "ge", "le",
        "std", "var", "sort", "topk", "gather", "scatter", "scatter_", "repeat", "tile", "roll",
        "flip", "cumsum", "prod", "any", "all", "masked_fill", "masked_fill_", "fill_", "zero_",
        "copy_", "normal_", "uniform_", "argmax", "argmin", "long", "int", "bool", "byte", "item",
        "numpy", "tolist", "size", "dim", "numel", "element_size", "nelement", "ndimension",
        "is_contiguous", "new_zeros", "new_ones", "new_full", "new_tensor", "relu", "relu_",
        "logsumexp", "lerp", "lerp_", "where", "nonzero", "isnan", "isinf", "isfinite", "round",
        "floor", "ceil", "sign", "neg", "reciprocal", "rsqrt", "diag", "trace", "tril", "triu",
        "pin_memory", "record_stream", "register_hook", "data_ptr", "get_device", "square",
        "mean_", "addmm", "logical_and", "logical_or", "logical_not", "unsqueeze_", "index_add_",
        "median", "mode", "histc", "unique", "cross", "dot", "outer", "float_power", "erf",
    }
)  # fmt: skip
MAKES_TENSOR_PREFIXES = ("torch.",)
