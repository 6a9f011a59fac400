#include "backends/cuda/persistent.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>

#include "backends/cuda/agreement.h"
#include "backends/cuda/kernels/block.h"
#include "backends/cuda/products.h"
#include "backends/cuda/timing.h"
#include "core/float16.h"

namespace tf_lstm_ops::cuda {
namespace {

constexpr int kMostTiles = 4;      // more need more registers than there are
constexpr int kFirstWithAll = 80;  // with TF32 and bfloat16 on tensor cores

int64_t Blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }

// Bytes of shared memory: the weights, and each warp's sums.
int64_t SharedBytes(int64_t tiles, int64_t chunks, int64_t warps) {
  const auto sums = static_cast<int64_t>(sizeof(WarpProducts<1>));
  return tiles * (chunks * kTileRows * kChunkBytes + warps * sums);
}

// TF_LSTM_OPS_CUDA_PERSISTENT, else nothing.
std::string Wish() {
  const char* text = std::getenv("TF_LSTM_OPS_CUDA_PERSISTENT");
  return text ? text : "";
}

using Key =
    std::tuple<CUcontext, int64_t, int64_t, int64_t, int64_t, CellKind, bool>;

// Whether calls of a kind are faster in one launch.
Choices<Key, bool>& Faster() {
  static auto* const faster = new Choices<Key, bool>;
  return *faster;
}

}  // namespace

bool FindSpread(const Device& device, const StepWork& work, int bytes,
                Spread* spread) {
  const int64_t chunks = Blocks(work.depth * bytes, kChunkBytes);
  Spread s;
  s.warps = static_cast<int>(std::min<int64_t>(chunks, kBlock / kWarp));
  s.stride = chunks * kChunkBytes / bytes;
  for (s.tiles = 1; s.tiles <= kMostTiles; ++s.tiles) {
    s.units = s.tiles * kTileRows / work.rows_of_unit;
    s.blocks = Blocks(work.units, s.units);
    const int64_t memory = SharedBytes(s.tiles, chunks, s.warps);
    if (memory > device.shared_bytes()) return false;
    s.shared_bytes = static_cast<int>(memory);
    *spread = s;
    if (s.blocks > device.multiprocessors()) continue;
    return work.steps <= std::numeric_limits<int32_t>::max() / s.blocks;
  }
  return false;
}

template <class T>
bool CanPersist(const Device& device) {
  if (Wish() == "0" || std::is_same_v<T, double>) return false;
  if (device.compute_capability() < kFirstWithAll) return false;
  return !std::is_same_v<T, float> || AllowsTf32();
}

template <class T>
Status MakePersistence(const Device& device, const Spread& spread,
                       int64_t batch, const GateMatrices<const T>& weights,
                       Persistence<T>* shared) {
  shared->units = spread.units;
  shared->weights = weights.data;
  shared->row_stride = weights.row_stride;
  shared->column_stride = weights.column_stride;
  shared->stride = spread.stride;
  const int64_t numbers = 2 * batch * spread.stride;
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(numbers, &shared->vectors));
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Zero(shared->vectors, numbers));
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(1, &shared->arrivals));
  return device.Zero(shared->arrivals, 1);
}

template <class T>
Status RunFaster(const Device& device, const PersistenceKind& kind,
                 const std::function<Status(bool persists)>& run,
                 const std::function<RunResult<T>()>& result) {
  bool persists = true;
  if (Wish() == "1" || !MayTry()) return run(persists);
  const Key key = {device.context(),       kind.type_size, kind.batch,
                   PowerOfTwo(kind.steps), kind.cell_size, kind.cell,
                   kind.is_backward};
  if (Faster().Find(key, &persists)) return run(persists);
  bool captures = false;
  TF_LSTM_OPS_RETURN_IF_ERROR(IsCapturing(device, &captures));
  if (captures) return run(persists);
  Agreement<T> agreement(device);
  bool agree = true;
  const auto compare = [&] {
    const RunResult<T> found = result();
    return agreement.Compare(found.data, found.rows, found.width, found.stride,
                             &agree);
  };
  float at_once = 0, step_by_step = 0;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Time(device, [&] { return run(false); }, &step_by_step));
  TF_LSTM_OPS_RETURN_IF_ERROR(compare());
  // An error: the card may have no room for all blocks at the same time.
  const Status tried = Time(device, [&] { return run(true); }, &at_once);
  if (tried.ok()) TF_LSTM_OPS_RETURN_IF_ERROR(compare());
  persists = tried.ok() && agree && at_once < step_by_step;
  Faster().Keep(key, persists);
  return run(persists);
}

#define TF_LSTM_OPS_INSTANTIATE(T)                                       \
  template bool CanPersist<T>(const Device&);                            \
  template Status MakePersistence(const Device&, const Spread&, int64_t, \
                                  const GateMatrices<const T>&,          \
                                  Persistence<T>*);                      \
  template Status RunFaster(const Device&, const PersistenceKind&,       \
                            const std::function<Status(bool)>&,          \
                            const std::function<RunResult<T>()>&);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
