"""Tests of the C++ core and of the engine on every instruction set, NEON under an emulator."""
