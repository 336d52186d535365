"""What PyInstaller adds to an application with siteline: files that are not modules.

The modules need no hook: they are in ``siteline._by_name``.
"""

from PyInstaller.utils.hooks import collect_data_files, copy_metadata

datas = collect_data_files("siteline") + copy_metadata("siteline")
