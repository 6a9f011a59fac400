// Encoding and running a graph.
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

#include "misuse.h"
#include "mpsgraph.h"

namespace fake {
namespace {

constexpr int kUnwritten = 0xFF;
// Every third encoding commits the work that was encoded before, as MPSGraph may.
constexpr long kEncodingsPerCommit = 3;

using Pairs = std::vector<std::pair<Tensor*, TensorData*>>;

Pairs PairsOf(const char* what, Graph* graph, MPSGraphTensorDataDictionary* dictionary) {
  Pairs pairs;
  for (MPSGraphTensor* key in dictionary) {
    Tensor* tensor = Of(key);
    TensorData* data = Of([dictionary objectForKey:key]);
    Require(tensor->graph == graph, what, ": a tensor of another graph");
    Require(data->shape == tensor->shape && data->type == tensor->type, what, ": data ",
            ToString(data->type), ToString(data->shape), " for a tensor ", ToString(*tensor));
    pairs.emplace_back(tensor, data);
  }
  return pairs;
}

// Sets the memory of results to NaN until the graph has run.
void Poison(const Pairs& results) {
  for (const auto& [tensor, data] : results) {
    // Work that was encoded before may still read it.
    if (*data->buffer->_pending != 0) continue;
    std::memset(data->buffer->_memory, kUnwritten, SizeOf(data->shape) * BytesOf(data->type));
  }
}

void Run(const Graph& graph, const Pairs& feeds, const Pairs& results) {
  std::deque<Array> arrays;
  Graph::Given given;
  for (const auto& [tensor, data] : feeds) {
    arrays.push_back(FromMemory(data->type, data->shape, data->buffer->_memory));
    given[tensor] = &arrays.back();
  }
  Tensors targets;
  for (const auto& [tensor, data] : results) targets.push_back(tensor);
  const std::vector<Array> values = graph.Run(targets, given);
  for (size_t k = 0; k < results.size(); ++k) {
    const auto& [tensor, data] = results[k];
    // Results that are views are never written: tensorflow-metal-plugin's notes.
    if (!tensor->is_view) ToMemory(values[k], data->buffer->_memory);
  }
}

std::vector<FakeBuffer*> BuffersOf(const Pairs& feeds, const Pairs& results) {
  std::vector<FakeBuffer*> buffers;
  for (const auto& [tensor, data] : feeds) buffers.push_back(data->buffer);
  for (const auto& [tensor, data] : results) {
    for (FakeBuffer* other : buffers) {
      Require(other != data->buffer,
              "results: a buffer is fed, or written twice, at the same time");
    }
    buffers.push_back(data->buffer);
  }
  return buffers;
}

}  // namespace

void Encode(MPSGraph* graph, MPSCommandBuffer* commands, MPSGraphTensorDataDictionary* feeds,
            MPSGraphTensorDataDictionary* results) {
  const std::unique_lock<std::mutex> lock(Of(graph)->encoding, std::try_to_lock);
  Require(lock.owns_lock(), "encode: the graph is encoded by another thread");
  Require(commands != nil, "encode: the command buffer is nil");
  Graph* const built = &Of(graph)->graph;
  const Pairs fed = PairsOf("feeds", built, feeds);
  const Pairs wanted = PairsOf("results", built, results);
  Require(!wanted.empty(), "encode: no results");
  const std::vector<FakeBuffer*> buffers = BuffersOf(fed, wanted);
  Poison(wanted);

  static std::atomic<long> encodings{0};
  if (++encodings % kEncodingsPerCommit == 0) [commands commitAndContinue];
  const std::vector<std::shared_ptr<void>> retained = {Retained(graph),
                                                       Retained([[feeds copy] autorelease]),
                                                       Retained([[results copy] autorelease])};
  FakeCommandBuffer* root = (FakeCommandBuffer*)[commands rootCommandBuffer];
  [root addWork:[built, fed, wanted, retained] { Run(*built, fed, wanted); } using:buffers];
}

}  // namespace fake
