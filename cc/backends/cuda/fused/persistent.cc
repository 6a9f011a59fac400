#include "backends/cuda/fused/persistent.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>

#include "backends/cuda/fused/products.h"
#include "backends/cuda/kernels/block.h"
#include "core/float16.h"

namespace tf_lstm_ops::cuda {
namespace {

constexpr int kMaxTiles = 8;               // without spilled registers
constexpr int kTensorCoreCapability = 80;  // TF32 and bfloat16
constexpr int kClusterCapability = 90;

// Clusters of 16 blocks exist on data-center GPUs only.
int MaxClusterBlocks(const Device& device) {
  return device.compute_capability() < 120 ? 16 : 8;
}

int64_t CeilDivide(int64_t n, int64_t divisor) {
  return (n + divisor - 1) / divisor;
}

// The product of a step: for each unit some rows of weights, each with `depth`
// elements.
struct StepWork {
  int64_t units, rows_per_unit, depth, steps, batch;
  int element_size;  // in bytes
};

template <class T>
StepWork WorkOf(const LayerDirection<T>& layer, Pass pass) {
  const int64_t cell_size = layer.config.cell_size;
  const int64_t gates = GateCount(layer.config.cell);
  StepWork work = {cell_size,
                   1,
                   gates * cell_size,
                   layer.sequence.steps,
                   layer.sequence.batch,
                   sizeof(T)};
  if (pass == Pass::kForward) {
    work.rows_per_unit = gates;
    work.depth = cell_size;
  }
  return work;
}

// Shared memory of the weights and of each warp's sums, in bytes.
int64_t ProductBytes(int64_t tiles, int64_t chunks, int64_t warps) {
  const auto sums = static_cast<int64_t>(sizeof(WarpProducts<1>));
  return tiles * (chunks * kTileRows * kChunkBytes + warps * sums);
}

// The configuration with `tiles` tiles in a block, in one group.
LaunchConfig WithTiles(int tiles, const StepWork& work) {
  const int64_t chunks =
      CeilDivide(work.depth * work.element_size, kChunkBytes);
  LaunchConfig config;
  config.tiles = tiles;
  config.units = tiles * kTileRows / work.rows_per_unit;
  config.blocks = CeilDivide(work.units, config.units);
  config.rows = work.batch;
  config.warps = static_cast<int>(std::min<int64_t>(chunks, kBlock / kWarp));
  config.stride = chunks * kChunkBytes / work.element_size;
  return config;
}

// Sets shared_bytes. Returns whether the device allows this much per block.
bool SetSharedBytes(const Device& device, int element_size,
                    LaunchConfig* config) {
  const int64_t chunks = config->stride * element_size / kChunkBytes;
  const int64_t bytes =
      config->vector_bytes + ProductBytes(config->tiles, chunks, config->warps);
  config->shared_bytes = static_cast<int>(bytes);
  return bytes <= device.shared_bytes();
}

std::optional<LaunchConfig> FindGrid(const Device& device,
                                     const StepWork& work) {
  for (int tiles = 1; tiles <= kMaxTiles; ++tiles) {
    LaunchConfig config = WithTiles(tiles, work);
    if (!SetSharedBytes(device, work.element_size, &config)) break;
    if (config.blocks > device.multiprocessors()) continue;
    // The counter of arrivals has 32 bits.
    if (work.steps > std::numeric_limits<int32_t>::max() / config.blocks) break;
    return config;
  }
  return std::nullopt;
}

// Distributes the rows of the batch over as many clusters as fit the device.
std::optional<LaunchConfig> FindClusters(const Device& device,
                                         const StepWork& work) {
  if (device.compute_capability() < kClusterCapability) return std::nullopt;
  for (int tiles = 1; tiles <= kMaxTiles; ++tiles) {
    LaunchConfig config = WithTiles(tiles, work);
    if (config.blocks > MaxClusterBlocks(device)) continue;
    config.algorithm = Algorithm::kFusedClusters;
    const int64_t clusters =
        std::max<int64_t>(device.multiprocessors() / config.blocks, 1);
    const int64_t columns = CeilDivide(work.batch, kColumns);
    config.rows =
        std::min(CeilDivide(columns, std::min(columns, clusters)) * kColumns,
                 work.batch);
    config.groups = CeilDivide(work.batch, config.rows);
    config.vector_bytes = 2 * config.rows * config.stride * work.element_size;
    if (!SetSharedBytes(device, work.element_size, &config)) break;
    return config;
  }
  return std::nullopt;
}

// TF_LSTM_OPS_CUDA_PERSISTENT, or "".
std::string ForcedLaunch() {
  const char* text = std::getenv("TF_LSTM_OPS_CUDA_PERSISTENT");
  return text ? text : "";
}

template <class T>
bool CanPersist(const Device& device, const LayerDirection<T>& layer) {
  if (ForcedLaunch() == "0" || std::is_same_v<T, double>) return false;
  if (device.compute_capability() < kTensorCoreCapability) return false;
  if (layer.recurrent_dropout.sets(GateCount(layer.config.cell)) > 1) {
    return false;
  }
  return !std::is_same_v<T, float> || AllowsTf32();
}

}  // namespace

template <class T>
std::optional<LaunchConfig> FindLaunchConfig(const Device& device,
                                             const LayerDirection<T>& layer,
                                             Pass pass, Algorithm algorithm) {
  if (algorithm == Algorithm::kFusedSteps || !CanPersist(device, layer) ||
      layer.sequence.batch == 0 || layer.config.cell_size == 0) {
    return std::nullopt;
  }
  const StepWork work = WorkOf(layer, pass);
  const auto grid = FindGrid(device, work);
  const auto clusters = FindClusters(device, work);
  if (algorithm == Algorithm::kFusedGrid) return grid ? grid : clusters;
  return clusters ? clusters : grid;
}

template <class T>
std::vector<Algorithm> FusedAlgorithms(const Device& device,
                                       const LayerDirection<T>& layer,
                                       const std::vector<Pass>& passes) {
  const std::string forced = ForcedLaunch();
  if (forced == "1") return {Algorithm::kFusedGrid};
  if (forced == "clusters") return {Algorithm::kFusedClusters};
  std::vector<Algorithm> all = {Algorithm::kFusedSteps};
  for (const Algorithm algorithm :
       {Algorithm::kFusedGrid, Algorithm::kFusedClusters}) {
    const bool exists =
        std::any_of(passes.begin(), passes.end(), [&](Pass pass) {
          const auto config = FindLaunchConfig(device, layer, pass, algorithm);
          return config && config->algorithm == algorithm;
        });
    if (exists) all.push_back(algorithm);
  }
  return all;
}

template <class T>
Status MakeGroupArguments(const Device& device, const LaunchConfig& config,
                          const LayerDirection<T>& layer,
                          GroupArguments<T>* group) {
  const GateMatrices<const T>& weights = layer.weights.recurrent;
  group->units = config.units;
  group->rows = config.rows;
  group->blocks = config.blocks;
  group->vector_bytes = config.vector_bytes;
  group->weights = weights.data;
  group->row_stride = weights.row_stride;
  group->column_stride = weights.column_stride;
  group->stride = config.stride;
  const int64_t size = 2 * layer.sequence.batch * config.stride;
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(size, &group->vectors));
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Zero(group->vectors, size));
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(1, &group->arrivals));
  return device.Zero(group->arrivals, 1);
}

#define TF_LSTM_OPS_INSTANTIATE(T)                                        \
  template std::optional<LaunchConfig> FindLaunchConfig(                  \
      const Device&, const LayerDirection<T>&, Pass, Algorithm);          \
  template std::vector<Algorithm> FusedAlgorithms(                        \
      const Device&, const LayerDirection<T>&, const std::vector<Pass>&); \
  template Status MakeGroupArguments(const Device&, const LaunchConfig&,  \
                                     const LayerDirection<T>&,            \
                                     GroupArguments<T>*);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
