"""Why a repair could not be made."""


class CannotFix(Exception):  # noqa: N818 - reads as what it says where it is raised
    """An edit cannot be made at this place; the repair that asked for it is dropped whole.

    A rule's repair function may raise it too, when it finds no right way to repair a place.
    """
