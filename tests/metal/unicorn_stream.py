"""Runs the stream of Apple's plugin, from its library for arm64, on an emulated processor.

Only the stream's own code runs. Functions of other libraries are replaced; messages to objects are
recorded and return the receiver or a new object.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from metal import macho

STACK, HEAP, STOP = 0x7000_0000, 0x6000_0000, 0x5000_0000
ROOM = 1 << 20
RET, BR_X16 = 0xD65F03C0, 0xD61F0200
LC_DYSYMTAB, LC_SEGMENT_64 = 0xB, 0x19
STUB_BYTES = 12
BLOCK_INVOKE = 16  # offset of the function of a block
METHODS = ("currentCommandBuffer", "commit", "commitAndWait")


class Image:
    """The segments and the symbols of a library. Its addresses start at 0."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        self.segments: list[tuple[int, int, int, int]] = []
        self.functions: dict[str, int] = {}
        self.stubs: dict[int, str] = {}
        names: list[str] = []
        stubs = indirect = (0, 0, 0)
        for command, at in macho.commands(self.data):
            if command == LC_SEGMENT_64:
                self.segments.append(struct.unpack_from("<4Q", self.data, at + 24))
                stubs = self._stubs(at) or stubs
            elif command == macho.LC_SYMTAB:
                for name, kind, address in macho.symbols(self.data, at):
                    names.append(name)
                    if not kind & macho.N_STAB and address:
                        self.functions[name] = address
            elif command == LC_DYSYMTAB:
                indirect = struct.unpack_from("<I", self.data, at + 56)
        address, length, first = stubs
        for k in range(length // STUB_BYTES):
            [symbol] = struct.unpack_from("<I", self.data, indirect[0] + 4 * (first + k))
            self.stubs[address + STUB_BYTES * k] = names[symbol]
        prefix = "_objc_msgSend$"
        self.stubs |= {a: n for n, a in self.functions.items() if n.startswith(prefix)}

    def _stubs(self, segment: int) -> tuple[int, int, int] | None:
        """Address, size and first indirect symbol of the segment's section __stubs."""
        for k in range(struct.unpack_from("<I", self.data, segment + 64)[0]):
            at = segment + 72 + 80 * k
            if self.data[at : at + 16].rstrip(b"\0") == b"__stubs":
                address, size = struct.unpack_from("<2Q", self.data, at + 32)
                return address, size, struct.unpack_from("<I", self.data, at + 68)[0]
        return None


class Stream:
    """A MetalStream and its wrapper. `trace` has what happened to command buffers."""

    def __init__(self, library: Path) -> None:
        import unicorn
        from unicorn import arm64_const

        self.image = Image(library)
        self.trace: list[str] = []
        self._buffers: dict[int, int] = {}  # the numbers of command buffers
        self._next = HEAP
        self._registers = arm64_const
        self._machine = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        self._load(unicorn)
        stream, self._wrapper = self._new(256), self._new(256)
        self._call("__ZN11MetalStreamC1EPU26objcproto15MTLCommandQueue11objc_object", stream, 1)
        self._call("-[MetalStreamWrapper initWithMetalStream:]", self._wrapper, 0, stream)
        self.trace.clear()

    def __call__(self, method: str) -> None:
        assert method in METHODS
        result = self._call(f"-[MetalStreamWrapper {method}]", self._wrapper, 0)
        if method == "currentCommandBuffer":
            self.trace.append(f"use {self._buffers[result]}")

    def _load(self, unicorn: Any) -> None:
        end = max(address + size for address, size, _, _ in self.image.segments)
        self._machine.mem_map(0, -(-end // ROOM) * ROOM)
        for start in (STACK, HEAP, STOP):
            self._machine.mem_map(start, ROOM)
        for address, _, offset, size in self.image.segments:
            self._machine.mem_write(address, self.image.data[offset : offset + size])
        for address, name in self.image.stubs.items():
            code = BR_X16 if name == "_dispatch_once" else RET
            self._machine.mem_write(address, struct.pack("<I", code))
        first, last = min(self.image.stubs), max(self.image.stubs)
        self._machine.hook_add(unicorn.UC_HOOK_CODE, self._on_stub, begin=first, end=last)

    def _new(self, size: int) -> int:
        self._next += -(-size // 16) * 16
        return self._next - -(-size // 16) * 16

    def _get(self, n: int) -> int:
        return self._machine.reg_read(self._registers.UC_ARM64_REG_X0 + n)

    def _set(self, n: int, value: int) -> None:
        self._machine.reg_write(self._registers.UC_ARM64_REG_X0 + n, value)

    def _call(self, function: str, *arguments: int) -> int:
        for n, argument in enumerate(arguments):
            self._set(n, argument)
        self._machine.reg_write(self._registers.UC_ARM64_REG_SP, STACK + ROOM // 2)
        self._machine.reg_write(self._registers.UC_ARM64_REG_LR, STOP)
        self._machine.emu_start(self.image.functions[function], STOP)
        return self._get(0)

    def _on_stub(self, machine: Any, address: int, size: int, user: Any) -> None:
        name = self.image.stubs.get(address)
        if name is None:
            return
        if name.startswith("_objc_msgSend$"):
            self._message(name.removeprefix("_objc_msgSend$"), self._get(0))
        elif name == "_dispatch_once":
            block = self._get(1)
            machine.mem_write(self._get(0), b"\xff" * 8)
            self._set(0, block)
            [invoke] = struct.unpack("<Q", machine.mem_read(block + BLOCK_INVOKE, 8))
            self._set(16, invoke)
        elif name == "_objc_msgSendSuper2":  # the receiver is in a structure
            self._set(0, struct.unpack("<Q", machine.mem_read(self._get(0), 8))[0])
        elif name == "_getenv":  # no variable is set
            self._set(0, 0)
        elif name in ("__Znwm", "_dispatch_queue_create"):
            self._set(0, self._new(256))

    def _message(self, selector: str, receiver: int) -> None:
        if selector == "commandBufferFromCommandQueue:":
            buffer = self._new(16)
            self._buffers[buffer] = len(self._buffers)
            self.trace.append(f"new {self._buffers[buffer]}")
            self._set(0, buffer)
        elif receiver in self._buffers:
            self.trace.append(f"{selector} {self._buffers[receiver]}")
