// A processor's tiles of bfloat16, for processors without AMX: runs the
// instructions of backends/cpu/simd/vector/tiles.h where they trap. On a
// processor with AMX it asks Linux for permission, and the processor runs them.
//
// It is linked into a program that is compiled with AMX. The engine also needs
// TF_LSTM_OPS_ASSUMES_TILES. The program ends with a message if it uses tiles
// without configuring them, or if a thread ends with configured tiles. The
// operations are those of Intel's manual (volume 2, LDTILECFG to TDPBF16PS).
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kRows = 16, kBytes = 64, kColumns = 16;

struct Tiles {
  bool configured = false;
  uint8_t data[8][kRows][kBytes];

  ~Tiles() {
    if (!configured) return;
    std::fprintf(stderr, "a thread ended with configured tiles\n");
    std::_Exit(3);
  }
};

thread_local Tiles g_tiles;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(3);
}

float Bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Denormal numbers count as zero, and results that are denormal become zero.
float Flush(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return (bits & 0x7f800000) == 0 ? Bits(bits & 0x80000000) : x;
}
float Element(uint32_t pair, bool second) {
  return Flush(Bits(second ? pair & 0xffff0000 : pair << 16));
}

// TDPBF16PS
void Dot(uint8_t (*sums)[kBytes], const uint8_t (*a)[kBytes],
         const uint8_t (*b)[kBytes]) {
  for (int m = 0; m < kRows; ++m) {
    float sum[2][kColumns] = {};
    for (int k = 0; k < kBytes / 4; ++k) {
      uint32_t left;
      std::memcpy(&left, &a[m][4 * k], sizeof left);
      for (int half = 0; half < 2; ++half) {
        for (int n = 0; n < kColumns; ++n) {
          uint32_t right;
          std::memcpy(&right, &b[k][4 * n], sizeof right);
          sum[half][n] = Flush(__builtin_fmaf(
              Element(left, half), Element(right, half), sum[half][n]));
        }
      }
    }
    for (int n = 0; n < kColumns; ++n) {
      float to;
      std::memcpy(&to, &sums[m][4 * n], sizeof to);
      to = Flush(Flush(to) + Flush(sum[0][n] + sum[1][n]));
      std::memcpy(&sums[m][4 * n], &to, sizeof to);
    }
  }
}

// The registers in the order of their numbers in instructions.
constexpr int kRegister[] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

// An operand in memory, from the byte ModRM on.
struct Operand {
  uint8_t* address;
  int64_t stride;  // the index register
  int size;        // of ModRM and what belongs to it, in bytes
};

Operand Decode(const uint8_t* modrm, const greg_t* registers, int x, int b) {
  const int mod = modrm[0] >> 6, rm = modrm[0] & 7;
  Operand operand = {nullptr, 0, 1};
  int64_t address = 0;
  bool has_base = true;
  if (rm == 4) {
    const uint8_t sib = modrm[operand.size++];
    const int index = (sib >> 3 & 7) | x << 3, base = (sib & 7) | b << 3;
    if (index != 4) {
      operand.stride = registers[kRegister[index]] << (sib >> 6);
    }
    has_base = mod != 0 || (sib & 7) != 5;
    if (has_base) address = registers[kRegister[base]];
  } else {
    if (mod == 0 && rm == 5) Fail("an address relative to the program counter");
    address = registers[kRegister[rm | b << 3]];
  }
  if (mod == 1) {
    address += static_cast<int8_t>(modrm[operand.size++]);
  } else if (mod == 2 || !has_base) {
    int32_t displacement;
    std::memcpy(&displacement, modrm + operand.size, sizeof displacement);
    address += displacement;
    operand.size += sizeof displacement;
  }
  operand.address = reinterpret_cast<uint8_t*>(address);
  return operand;
}

void Configure(const uint8_t* from) {
  if (reinterpret_cast<uintptr_t>(from) % kBytes != 0) Fail("not aligned");
  for (int t = 0; t < 8; ++t) {
    uint16_t bytes;
    std::memcpy(&bytes, from + 16 + 2 * t, sizeof bytes);
    if (from[0] != 1 || from[1] != 0 || bytes != kBytes ||
        from[48 + t] != kRows) {
      Fail("a configuration that this program does not know");
    }
  }
  g_tiles.configured = true;
  std::memset(g_tiles.data, 0, sizeof g_tiles.data);
}

void Trap(int, siginfo_t*, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* at = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  // A VEX prefix of three bytes, the opcode, and ModRM.
  if (at[0] != 0xc4 || (at[1] & 31) != 2) Fail("an unknown instruction");
  const int r = ~at[1] >> 7 & 1, x = ~at[1] >> 6 & 1, b = ~at[1] >> 5 & 1;
  const int vvvv = ~at[2] >> 3 & 15, prefix = at[2] & 3, opcode = at[3];
  const uint8_t* modrm = at + 4;
  const int reg = (modrm[0] >> 3 & 7) | r << 3, mod = modrm[0] >> 6;
  int size = 1;
  auto& data = g_tiles.data;
  if (opcode == 0x49 && prefix == 0 && mod == 3) {  // TILERELEASE
    g_tiles.configured = false;
  } else if (opcode == 0x49 && prefix == 0) {  // LDTILECFG
    const Operand from = Decode(modrm, registers, x, b);
    Configure(from.address);
    size = from.size;
  } else {
    if (!g_tiles.configured) Fail("the tiles are not configured");
    if (reg > 7) Fail("an unknown tile");
    if (opcode == 0x4b && (prefix == 3 || prefix == 2)) {
      const Operand memory = Decode(modrm, registers, x, b);
      for (int m = 0; m < kRows; ++m) {
        uint8_t* row = memory.address + m * memory.stride;
        if (prefix == 3) {  // TILELOADD
          std::memcpy(data[reg][m], row, kBytes);
        } else {  // TILESTORED
          std::memcpy(row, data[reg][m], kBytes);
        }
      }
      size = memory.size;
    } else if (opcode == 0x5c && prefix == 2 && mod == 3) {
      Dot(data[reg], data[modrm[0] & 7], data[vvvv]);
    } else {
      Fail("an unknown instruction on tiles");
    }
  }
  registers[REG_RIP] += 4 + size;
}

[[maybe_unused]] const bool g_installed = [] {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  syscall(SYS_arch_prctl, kRequestPermission, kTileData);  // or they trap
  struct sigaction action = {};
  action.sa_sigaction = &Trap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  return sigaction(SIGILL, &action, nullptr) == 0;
}();

}  // namespace
