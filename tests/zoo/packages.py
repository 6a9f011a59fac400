"""Downloads packages with trained models of others, by exact version and hash."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

# By name: the version, the file, and its SHA-256.
PACKAGES = {
    "chars2vec": (
        "0.1.7",
        "chars2vec-0.1.7.tar.gz",
        "df05b0765e406e1bdb9f9537adf7fccb24db4a81956aea5c25a707a03a6a8094",
    ),
    "deepcut": (
        "0.7.0.0",
        "deepcut-0.7.0.0-py3-none-any.whl",
        "054b778236b75ee505fb79759e180972e8b50be9af4c741451beceab0bbd887b",
    ),
    "textgenrnn": (
        "2.0.0",
        "textgenrnn-2.0.0.tar.gz",
        "c2b6f1c201c76d5a6021079e95a8db499bbe15d9f3448d33cb51c0cd496c86f8",
    ),
    "netra-transliterate": (
        "1.0.1",
        "netra_transliterate-1.0.1-py3-none-any.whl",
        "6878e5ad5e6b756c823a3dd752f4f4987a46c9a4817d5b96aafbe0470a664219",
    ),
    "g2p-en": (
        "2.1.0",
        "g2p_en-2.1.0-py3-none-any.whl",
        "2a7aabf1fc7f270fcc3349881407988c9245173c2413debbe5432f4a4f31319f",
    ),
    "silero-vad": (
        "6.2.3",
        "silero_vad-6.2.3-py3-none-any.whl",
        "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
    ),
    "LanguageIdentifier": (
        "1.1.1",
        "LanguageIdentifier-1.1.1-py3-none-any.whl",
        "788613b3dd3ef9533ad746ae34fe0ca8285316bc9b2a7093397da22c0d74481f",
    ),
    "g2p-fa": (
        "1.1.0",
        "g2p_fa-1.1.0-py3-none-any.whl",
        "4b5fde901920fa326852ae121431c3d91e696e1290f9fca87b5657ea2e56a320",
    ),
    "uzmorph-nn": (
        "0.1.0",
        "uzmorph_nn-0.1.0-py3-none-any.whl",
        "cce2474cd810f91e9311ab50a214db7700a53c84d704b289ff6c9b8d1e67b3b3",
    ),
}


def download(name: str, folder: Path) -> Path:
    """Downloads a package and unpacks it. Nothing is installed, and no module of it is imported.

    Args:
      name: the name of the package.
      folder: an empty folder.

    Returns:
      The folder with the package's files.
    """
    version, file, digest = PACKAGES[name]
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{name}=={version} --hash=sha256:{digest}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    subprocess.run([*command, "-r", requirements, "-d", folder], check=True)
    unpacked = folder / "unpacked"
    if file.endswith(".whl"):
        with zipfile.ZipFile(folder / file) as wheel:
            wheel.extractall(unpacked)
    else:
        with tarfile.open(folder / file) as archive:
            archive.extractall(unpacked, filter="data")
    return unpacked


def only(folder: Path, pattern: str) -> Path:
    """The only file of a package that has a name like this.

    Args:
      folder: the package's files.
      pattern: as of `Path.rglob`.

    Returns:
      The path.
    """
    (found,) = folder.rglob(pattern)
    return found
