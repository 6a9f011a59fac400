#include "backends/cuda/fused/persistent.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>

#include "backends/cuda/fused/products.h"
#include "backends/cuda/fused/result_check.h"
#include "backends/cuda/kernels/block.h"
#include "backends/cuda/runtime/timing.h"
#include "core/float16.h"

namespace tf_lstm_ops::cuda {
namespace {

constexpr int kMostTiles = 8;      // these have the registers they need
constexpr int kFirstWithAll = 80;  // with TF32 and bfloat16 on tensor cores
constexpr int kFirstWithClusters = 90;

// Those of 16 are for servers' cards.
int MostBlocksOfCluster(const Device& device) {
  return device.compute_capability() < 120 ? 16 : 8;
}

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

// Of calls of a kind.
Choices<Key, Launches>& Fastest() {
  static auto* const fastest = new Choices<Key, Launches>;
  return *fastest;
}

// With so many tiles in a block.
Spread WithTiles(int tiles, const StepWork& work, int bytes) {
  const int64_t chunks = Blocks(work.depth * bytes, kChunkBytes);
  Spread s;
  s.tiles = tiles;
  s.units = tiles * kTileRows / work.rows_of_unit;
  s.blocks = Blocks(work.units, s.units);
  s.rows = work.batch;
  s.warps = static_cast<int>(std::min<int64_t>(chunks, kBlock / kWarp));
  s.stride = chunks * kChunkBytes / bytes;
  return s;
}

// Whether its blocks have the memory, which is then set.
bool Fits(const Device& device, int bytes, Spread* s) {
  const int64_t chunks = s->stride * bytes / kChunkBytes;
  const int64_t memory =
      s->vector_bytes + SharedBytes(s->tiles, chunks, s->warps);
  s->shared_bytes = static_cast<int>(memory);
  return memory <= device.shared_bytes();
}

// Those that all blocks of the launch share.
bool FindTogether(const Device& device, const StepWork& work, int bytes,
                  Spread* spread) {
  for (int tiles = 1; tiles <= kMostTiles; ++tiles) {
    Spread s = WithTiles(tiles, work, bytes);
    if (!Fits(device, bytes, &s)) return false;
    if (s.blocks > device.multiprocessors()) continue;
    *spread = s;
    return work.steps <= std::numeric_limits<int32_t>::max() / s.blocks;
  }
  return false;
}

// Those that a cluster shares. Rows of the batch go to as many as there is room
// for.
bool FindClusters(const Device& device, const StepWork& work, int bytes,
                  Spread* spread) {
  if (device.compute_capability() < kFirstWithClusters) return false;
  for (int tiles = 1; tiles <= kMostTiles; ++tiles) {
    Spread s = WithTiles(tiles, work, bytes);
    if (s.blocks > MostBlocksOfCluster(device)) continue;
    s.launches = Launches::kClusters;
    const int64_t room =
        std::max<int64_t>(device.multiprocessors() / s.blocks, 1);
    const int64_t columns = Blocks(work.batch, kColumns);
    s.rows = std::min(Blocks(columns, std::min(columns, room)) * kColumns,
                      work.batch);
    s.groups = Blocks(work.batch, s.rows);
    s.vector_bytes = 2 * s.rows * s.stride * bytes;
    if (!Fits(device, bytes, &s)) return false;
    *spread = s;
    return true;
  }
  return false;
}

// The one of these launches; null for step by step, and where there is none.
const Spread* Of(const std::vector<Spread>& spreads, Launches launches) {
  const auto found =
      std::find_if(spreads.begin(), spreads.end(),
                   [&](const Spread& s) { return s.launches == launches; });
  return found == spreads.end() ? nullptr : &*found;
}

}  // namespace

std::vector<Spread> FindSpreads(const Device& device, const StepWork& work,
                                int bytes) {
  std::vector<Spread> spreads;
  Spread spread;
  if (FindTogether(device, work, bytes, &spread)) spreads.push_back(spread);
  if (FindClusters(device, work, bytes, &spread)) spreads.push_back(spread);
  return spreads;
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
  shared->rows = spread.rows;
  shared->blocks = spread.blocks;
  shared->vector_bytes = spread.vector_bytes;
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

namespace {

// By trying.
template <class T>
Status FindFastest(const Device& device, const PersistenceKind& kind,
                   const std::vector<Spread>& spreads,
                   const std::function<Status(const Spread*)>& run,
                   const std::function<RunResult<T>()>& result,
                   Launches* fastest) {
  const Scratch scratch(device);
  Agreement<T> agreement(device);
  TF_LSTM_OPS_RETURN_IF_ERROR(agreement.Allocate(kind.result_size));
  const auto try_it = [&](const Spread* spread, float* milliseconds,
                          bool* agrees) {
    const Scratch of_run(device);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Time(device, [&] { return run(spread); }, milliseconds));
    const RunResult<T> found = result();
    return agreement.Compare(found.data, found.rows, found.width, found.stride,
                             agrees);
  };
  float best = 0, milliseconds = 0;
  bool agrees = true;
  TF_LSTM_OPS_RETURN_IF_ERROR(try_it(nullptr, &best, &agrees));
  *fastest = Launches::kSteps;
  for (const Spread& spread : spreads) {
    // An error: the card may have no room for all blocks at the same time.
    const Status tried = try_it(&spread, &milliseconds, &agrees);
    if (!tried.ok() || !agrees || milliseconds >= best) continue;
    best = milliseconds;
    *fastest = spread.launches;
  }
  return Status();
}

}  // namespace

template <class T>
Status RunFastest(const Device& device, const PersistenceKind& kind,
                  const std::vector<Spread>& spreads,
                  const std::function<Status(const Spread*)>& run,
                  const std::function<RunResult<T>()>& result) {
  if (spreads.empty()) return run(nullptr);
  if (Wish() == "clusters") return run(&spreads.back());
  if (Wish() == "1") return run(&spreads.front());
  if (!MayTry()) return run(nullptr);
  const Key key = {device.context(),       kind.type_size, kind.batch,
                   PowerOfTwo(kind.steps), kind.cell_size, kind.cell,
                   kind.is_backward};
  Launches fastest = Launches::kSteps;
  if (!Fastest().Find(key, &fastest)) {
    bool captures = false;
    TF_LSTM_OPS_RETURN_IF_ERROR(IsCapturing(device, &captures));
    if (captures) return run(nullptr);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        FindFastest(device, kind, spreads, run, result, &fastest));
    Fastest().Keep(key, fastest);
  }
  return run(Of(spreads, fastest));
}

#define TF_LSTM_OPS_INSTANTIATE(T)                                        \
  template bool CanPersist<T>(const Device&);                             \
  template Status MakePersistence(const Device&, const Spread&, int64_t,  \
                                  const GateMatrices<const T>&,           \
                                  Persistence<T>*);                       \
  template Status RunFastest(const Device&, const PersistenceKind&,       \
                             const std::vector<Spread>&,                  \
                             const std::function<Status(const Spread*)>&, \
                             const std::function<RunResult<T>()>&);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
