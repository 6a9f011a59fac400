"""The cases that check.py compares: RNNs, their sizes, and the tensors that they have."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch

Tensors = dict[str, torch.Tensor]

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
MODULES = {
    "lstm": torch.nn.LSTM,
    "gru": torch.nn.GRU,
    "rnn_tanh": torch.nn.RNN,
    "rnn_relu": torch.nn.RNN,
}
FIELDS = ("input", "input_h", "input_c", "params")
OUTPUTS = ("output", "output_h", "output_c")


@dataclass(frozen=True)
class Case:
    mode: str = "lstm"
    layers: int = 1
    directions: int = 1
    inputs: int = 3
    units: int = 5
    proj: int = 0
    time: int = 4
    batch: int = 6
    lengths: tuple[int, ...] = ()
    time_major: bool = True

    @property
    def hidden(self) -> int:
        return self.proj or self.units

    def row_lengths(self) -> list[int]:
        return list(self.lengths) or [self.time] * self.batch

    def module(self, dtype: torch.dtype, device: str = "cpu") -> torch.nn.Module:
        options: dict[str, Any] = {"proj_size": self.proj} if self.proj else {}
        if self.mode.startswith("rnn_"):
            options["nonlinearity"] = self.mode.removeprefix("rnn_")
        return MODULES[self.mode](
            self.inputs,
            self.units,
            self.layers,
            bidirectional=self.directions == 2,
            dtype=dtype,
            device=device,
            **options,
        )

    def __str__(self) -> str:
        shown = f"{self.mode} L{self.layers} D{self.directions} T{self.time} B{self.batch}"
        shown += f" I{self.inputs} H{self.units}" + (f" P{self.proj}" if self.proj else "")
        return shown + (" lengths" if self.lengths else "") + ("" if self.time_major else " major")


SMALL = [
    Case(mode, layers, directions, lengths=lengths, time_major=major)
    for mode, (layers, directions), lengths, major in itertools.product(
        MODULES, [(1, 1), (2, 2)], [(), (2, 4, 0, 1, 3, 2)], [True, False]
    )
] + [Case(layers=2, directions=2, proj=2, lengths=lengths) for lengths in ((), (2, 4, 0, 1, 3, 2))]
# And larger ones, for several tiles and blocks of the package's own kernels.
OWN = [
    case
    for case in SMALL
    # cuDNN alone supports a projection with rows of length zero
    if not (case.proj and case.lengths)
] + [
    Case("lstm", inputs=8, units=70, time=5, batch=19),
    Case("gru", inputs=8, units=33, time=5, batch=33),
    Case("lstm", inputs=8, units=70, proj=24, time=5, batch=6, lengths=(5, 1, 3, 2, 4, 5)),
]
# The sizes of the project's goals, and of DeepBench.
LARGE = [
    Case(inputs=h, units=h, time=t, batch=b)
    for b, h, t in [
        (1, 512, 100),
        (16, 1024, 100),
        (64, 1024, 100),
        (64, 2048, 50),
        (128, 4096, 25),
    ]
]
