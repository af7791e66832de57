"""Modules: which behave differently in training and evaluation, which normalise, which wrap."""

from __future__ import annotations

MODE_SENSITIVE = frozenset(
    {
        "Dropout",
        "Dropout1d",
        "Dropout2d",
        "Dropout3d",
        "AlphaDropout",
        "FeatureAlphaDropout",
        "BatchNorm1d",
        "BatchNorm2d",
        "BatchNorm3d",
        "LazyBatchNorm1d",
        "LazyBatchNorm2d",
        "LazyBatchNorm3d",
        "SyncBatchNorm",
        "RReLU",
        "Transformer",
        "TransformerEncoder",
        "TransformerDecoder",
        "TransformerEncoderLayer",
        "TransformerDecoderLayer",
    }
)
NORMALISING = frozenset(
    {
        "BatchNorm1d",
        "BatchNorm2d",
        "BatchNorm3d",
        "LazyBatchNorm1d",
        "LazyBatchNorm2d",
        "LazyBatchNorm3d",
        "SyncBatchNorm",
        "LayerNorm",
        "GroupNorm",
        "RMSNorm",
        "InstanceNorm1d",
        "InstanceNorm2d",
        "InstanceNorm3d",
    }
)
EMBEDDINGS = frozenset({"Embedding", "EmbeddingBag"})
WITH_DROPOUT_ARGUMENT = {"LSTM": 0.0, "GRU": 0.0, "RNN": 0.0, "MultiheadAttention": 0.0}
DECAYED_INSIDE = frozenset(
    {
        "Transformer",
        "TransformerEncoder",
        "TransformerDecoder",
        "TransformerEncoderLayer",
        "TransformerDecoderLayer",
    }
)
PARAMETERLESS = frozenset(
    {
        "AdaptiveAvgPool1d",
        "AdaptiveAvgPool2d",
        "AdaptiveAvgPool3d",
        "AdaptiveMaxPool1d",
        "AdaptiveMaxPool2d",
        "AdaptiveMaxPool3d",
        "AlphaDropout",
        "AvgPool1d",
        "AvgPool2d",
        "AvgPool3d",
        "CELU",
        "ChannelShuffle",
        "CircularPad1d",
        "CircularPad2d",
        "ConstantPad1d",
        "ConstantPad2d",
        "ConstantPad3d",
        "CosineSimilarity",
        "Dropout",
        "Dropout1d",
        "Dropout2d",
        "Dropout3d",
        "ELU",
        "FeatureAlphaDropout",
        "Flatten",
        "Fold",
        "FractionalMaxPool2d",
        "GELU",
        "GLU",
        "Hardshrink",
        "Hardsigmoid",
        "Hardswish",
        "Hardtanh",
        "Identity",
        "LPPool1d",
        "LPPool2d",
        "LeakyReLU",
        "LocalResponseNorm",
        "LogSigmoid",
        "LogSoftmax",
        "MaxPool1d",
        "MaxPool2d",
        "MaxPool3d",
        "MaxUnpool1d",
        "MaxUnpool2d",
        "MaxUnpool3d",
        "Mish",
        "PairwiseDistance",
        "PixelShuffle",
        "PixelUnshuffle",
        "RReLU",
        "ReLU",
        "ReLU6",
        "ReflectionPad1d",
        "ReflectionPad2d",
        "ReplicationPad1d",
        "ReplicationPad2d",
        "SELU",
        "SiLU",
        "Sigmoid",
        "Softmax",
        "Softmax2d",
        "Softmin",
        "Softplus",
        "Softshrink",
        "Softsign",
        "Tanh",
        "Tanhshrink",
        "Threshold",
        "Unflatten",
        "Unfold",
        "Upsample",
        "UpsamplingBilinear2d",
        "UpsamplingNearest2d",
        "ZeroPad1d",
        "ZeroPad2d",
        "ZeroPad3d",
    }
)
CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict"})
NOT_MODULES = frozenset(
    {"Parameter", "UninitializedParameter", "Buffer", "UninitializedBuffer", "Module"}
)

WRAPPERS = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
        "apex.parallel.DistributedDataParallel",
        "apex.parallel.convert_syncbn_model",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "torch.compile",
        "torch.jit.script",
        "torch.distributed.fsdp.fully_shard",
        "torch.distributed._composable.fsdp.fully_shard",
    }
)
DISTRIBUTED_WRAPPERS = frozenset(name for name in WRAPPERS if name.endswith("DataParallel"))

RETURNS_ITSELF = frozenset(
    {
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "double",
        "bfloat16",
        "train",
        "eval",
        "apply",
        "requires_grad_",
        "to_empty",
        "share_memory",
        "type",
        "xpu",
        "mps",
        "zero_",
        "compile",
        "module",
        "unwrap",
    }
)

LEAVES_TRAINING_ALONE = frozenset(
    {
        "set_requires_gradient_sync",
        "set_requires_all_reduce",
        "set_is_last_backward",
        "set_reshard_after_backward",
        "set_modules_to_forward_prefetch",
        "set_modules_to_backward_prefetch",
        "reshard",
        "unshard",
        "register_comm_hook",
        "gradient_checkpointing_enable",
        "enable_input_require_grads",
        "get_input_embeddings",
        "resize_token_embeddings",
    }
)
"""Methods of networks that take no step, clear nothing and switch no mode."""


def is_torch_module(dotted: str) -> bool:
    """Whether a dotted name is a class of ``torch.nn`` that makes modules."""
    head, _, last = dotted.rpartition(".")
    return head == "torch.nn" and last[:1].isupper() and last not in NOT_MODULES
