"""Adds siteline's data files and package metadata to an application.

The modules need no hook, because a function in ``siteline`` imports them.
"""


def _files() -> list[tuple[str, str]]:
    """Returns the files and their folders in the application."""
    try:
        from PyInstaller.utils.hooks import collect_data_files, copy_metadata
    except ModuleNotFoundError:
        # A tool that imports every module, such as a type checker, runs this file too.
        return []
    return [*collect_data_files("siteline"), *copy_metadata("siteline")]


datas = _files()
