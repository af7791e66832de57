"""Lists the packages: folders of the repository's top level install below ``trainlint``."""

from setuptools import find_namespace_packages, setup

FOLDERS = {
    "trainlint": "trainlint",
    "trainlint.rules": "rules",
    "trainlint.runtime": "runtime",
    "trainlint.reference_trainers": "reference_trainers",
}

setup(
    package_dir=FOLDERS,
    packages=[
        name
        for package, folder in FOLDERS.items()
        for name in [
            package,
            *(f"{package}.{inner}" for inner in find_namespace_packages(folder)),
        ]
        if "__pycache__" not in name
    ],
    package_data={"": ["py.typed", "*.html", "*.css", "*.js", "*.md"]},
)
