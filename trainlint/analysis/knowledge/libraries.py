"""Libraries by what their calls can do to a training loop."""

from __future__ import annotations

_HARMLESS = (
    "builtins.", "numpy.", "math.", "os.", "sys.", "time.", "json.", "logging.", "random.", "tqdm",
    "re.", "copy.", "pathlib.", "collections.", "itertools.", "functools.", "datetime.", "pickle.",
    "argparse.", "warnings.", "gc.", "shutil.", "csv.", "glob.", "string.", "subprocess.", "typing.",
    "matplotlib.", "pandas.", "sklearn.", "scipy.", "PIL.", "cv2.", "seaborn.", "wandb.", "torch.",
    "torchvision.", "torchaudio.", "torchmetrics.", "tensorboardX.", "einops.", "rich.", "yaml.",
    "skimage.", "imageio.", "nltk.", "h5py.", "psutil.", "pprint.", "traceback.", "contextlib.",
    "dataclasses.", "enum.", "inspect.", "types.", "operator.", "statistics.", "mlflow.", "plotly.",
    "absl.logging.", "torchinfo.", "torchsummary.", "thop.", "evaluate.", "datasets.", "sacrebleu.",
    "jiwer.", "editdistance.", "Levenshtein.", "gym.", "gymnasium.", "tiktoken.", "visdom.",
)  # fmt: skip
# Whose objects take, keep and show things, and change nothing about training.
BYSTANDERS = (
    "argparse.", "logging.", "time.", "datetime.", "json.", "csv.", "re.", "pathlib.", "random.",
    "collections.Counter", "yaml.", "matplotlib.", "pandas.", "tensorboardX.", "wandb.", "tqdm.",
    "torch.utils.tensorboard.", "rich.", "absl.logging", "threading.", "subprocess.",
)  # fmt: skip
PASS_THROUGH = frozenset(
    {
        "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.std.tqdm", "tqdm.trange",
        "tqdm.tqdm_notebook", "builtins.iter", "builtins.list", "builtins.tuple", "builtins.reversed",
        "builtins.sorted", "builtins.set", "rich.progress.track", "itertools.cycle", "itertools.islice",
        "fastprogress.progress_bar", "itertools.chain", "progressbar.progressbar", "builtins.filter",
    }
)  # fmt: skip


def is_harmless(dotted: str) -> bool:
    """Whether a library's function leaves models, optimizers and gradients alone."""
    return dotted.startswith(_HARMLESS)

SETS_EPOCH_ITSELF = frozenset(
    {
        "accelerate", "lightning", "pytorch_lightning", "ignite", "mmengine", "mmcv", "composer",
        "fastai", "catalyst", "colossalai", "torchtnt", "ray",
    }
)  # fmt: skip
