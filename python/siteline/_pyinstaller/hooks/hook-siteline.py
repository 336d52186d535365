"""Adds siteline's data files and package metadata to an application.

The modules need no hook, because ``siteline._by_name`` imports them.
"""

try:
    from PyInstaller.utils.hooks import collect_data_files, copy_metadata
except ModuleNotFoundError:
    # Only a tool that reads each module of the package gets here, for example a type checker.
    datas: list[tuple[str, str]] = []
else:
    datas = [*collect_data_files("siteline"), *copy_metadata("siteline")]
