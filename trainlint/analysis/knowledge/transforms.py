"""Transforms of the image libraries: which draw at random, and which only combine others."""

from __future__ import annotations

_TORCHVISION = frozenset(
    {
        "RandomCrop", "RandomResizedCrop", "RandomSizedCrop", "RandomHorizontalFlip",
        "RandomVerticalFlip", "RandomRotation", "RandomAffine", "RandomPerspective", "ColorJitter",
        "RandomErasing", "RandomGrayscale", "AutoAugment", "RandAugment", "TrivialAugmentWide",
        "AugMix", "RandomApply", "RandomAdjustSharpness", "RandomAutocontrast", "RandomEqualize",
        "RandomInvert", "RandomPosterize", "RandomSolarize", "RandomPhotometricDistort",
        "RandomZoomOut", "RandomIoUCrop", "ElasticTransform",
    }
)  # fmt: skip
_ALBUMENTATIONS = frozenset(
    {
        "HorizontalFlip", "VerticalFlip", "Flip", "RandomRotate90", "Rotate", "ShiftScaleRotate",
        "RandomCrop", "RandomResizedCrop", "RandomSizedCrop", "RandomBrightnessContrast",
        "HueSaturationValue", "ColorJitter", "GaussNoise", "MotionBlur", "CoarseDropout", "Cutout",
        "ElasticTransform", "GridDistortion", "OpticalDistortion", "RandomGamma", "Affine",
        "Perspective", "RGBShift", "RandomScale", "SafeRotate",
    }
)  # fmt: skip
_COMBINING = frozenset({"Compose", "Sequential", "OneOf", "RandomOrder", "SomeOf", "ReplayCompose"})
_LIBRARIES = ("torchvision.transforms.", "albumentations.", "torch.nn.", "monai.transforms.")


def is_random(dotted: str) -> bool:
    """Whether a library's transform changes samples at random."""
    last = dotted.rpartition(".")[2]
    if dotted.startswith("torchvision.transforms."):
        return last in _TORCHVISION
    if dotted.startswith("albumentations."):
        return last in _ALBUMENTATIONS
    return dotted.startswith("monai.transforms.Rand")


def only_combines(dotted: str) -> bool:
    """Whether a library's object only applies the transforms that it was given."""
    return dotted.startswith(_LIBRARIES) and dotted.rpartition(".")[2] in _COMBINING
