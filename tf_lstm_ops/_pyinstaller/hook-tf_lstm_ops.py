"""What PyInstaller adds to a program that imports tf_lstm_ops."""

from pathlib import Path

from PyInstaller.utils.hooks import collect_data_files, collect_dynamic_libs, get_package_paths

PACKAGE = "tf_lstm_ops"

binaries = collect_dynamic_libs(PACKAGE)
# Not the files for compiling programs in C. Those of the CUDA stream library stay.
datas = collect_data_files(PACKAGE, excludes=["**/*.a", "include", "_lib/cmake", "_lib/pkgconfig"])


def _modules() -> list[str]:
    """All, because the package imports many of its modules by name. None is imported here: some
    import TensorFlow, which a program with sessions need not have."""
    folder = Path(get_package_paths(PACKAGE)[1])
    files = [file.relative_to(folder.parent).with_suffix("") for file in folder.rglob("*.py")]
    names = (file.parent if file.name == "__init__" else file for file in files)
    return [".".join(name.parts) for name in names if "-" not in name.name]  # no hook


hiddenimports = _modules()
