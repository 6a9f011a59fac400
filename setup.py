"""Adds the native libraries and the dependencies to the wheel; the rest is in pyproject.toml."""

import os
import platform
import sys
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from build_defs import native  # noqa: E402
from build_defs.long_description import long_description, project_urls  # noqa: E402

# TensorFlow has several distributions (tensorflow, tensorflow-cpu, tf-nightly), which overwrite one
# another. A released package therefore requires none of them, nor Keras, which comes with each. An
# installation from a clone has what README's commands need.
DEPENDENCIES = ["numpy>=1.26"]
OF_A_CLONE = [
    "tensorflow>=2.18,<2.23",
    "keras>=3.8,<3.17",  # 3.8 is the first whose cells drop h gate by gate
    "matplotlib>=3.8",  # the demo's plot
]
# A source distribution has this file; scripts/release/build sets the variable.
IS_RELEASE = (ROOT / "PKG-INFO").exists() or os.environ.get("TF_LSTM_OPS_RELEASE") == "1"
REQUIRES_TENSORFLOW = not IS_RELEASE and not native.sessions_only()


class BuildNative(build_ext):
    def get_ext_filename(self, ext_name: str) -> str:
        # No Python ABI in the name: TensorFlow loads the library, Python does not.
        return ext_name.replace(".", "/") + ".so"

    def run(self) -> None:
        jobs = self.parallel if isinstance(self.parallel, int) else None
        try:
            if self.inplace:  # an editable installation
                native.build_checkout(jobs)
            else:
                outputs = {
                    Path(self.get_ext_fullpath(e.name)).resolve(): e for e in self.extensions
                }
                built = native.build_possible([*outputs], Path(self.build_temp).resolve(), jobs)
                self.extensions = [outputs[output] for output in built]
        except native.BuildError as error:
            raise CompileError(str(error)) from error


class PlatformWheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        # A universal Python on macOS builds for its own processor only.
        tag = super().get_tag()[2].replace("universal2", platform.machine())
        return "py3", "none", tag


LIBRARIES = [Path(name).stem for name in native.libraries(platform.system())]

# Each build outside of the checkout has a folder of its own: a module that was renamed must not
# come along from the last one, and on macOS setuptools' "build" would be the same name as "BUILD".
with tempfile.TemporaryDirectory() as build_base:
    setup(
        long_description=long_description((ROOT / "README.md").read_text(encoding="utf-8")),
        long_description_content_type="text/markdown",
        project_urls=project_urls(),
        install_requires=DEPENDENCIES + OF_A_CLONE * REQUIRES_TENSORFLOW,
        ext_modules=[Extension(f"tf_lstm_ops._lib.{name}", sources=[]) for name in LIBRARIES],
        cmdclass={"build_ext": BuildNative, "bdist_wheel": PlatformWheel},
        options={"build": {"build_base": build_base}},
    )
