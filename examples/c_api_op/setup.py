"""Builds libclip_rows.so in the package, beside __init__.py."""

import sys

import tensorflow as tf
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

HEADERS = ["-isystem", tf.sysconfig.get_include()]
# Without the option, a linker leaves out a library that nothing before it on the line needs.
NEEDED = [] if sys.platform == "darwin" else ["-Wl,--no-as-needed"]


class BuildLibrary(build_ext):
    def get_ext_filename(self, name: str) -> str:
        """Without the version of Python, which the library does not use."""
        return name.replace(".", "/") + ".so"


class Wheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        """For every version of Python on this platform."""
        return "py3", "none", super().get_tag()[2]


setup(
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": Wheel},
    ext_modules=[
        Extension(
            "clip_rows.libclip_rows",
            ["src/clip_rows.cc", "src/scale_rows.cc"],
            depends=["src/c_api.h"],
            extra_compile_args=["-std=c++17", "-O2", "-Wall", "-Wextra", *HEADERS],
            extra_link_args=NEEDED + tf.sysconfig.get_link_flags(),
        )
    ],
)
