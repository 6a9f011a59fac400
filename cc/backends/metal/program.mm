#include "backends/metal/program.h"

#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace tf_lstm_ops::metal {
namespace {

// Least-recently-used cache. The most recent program is at the front.
class Cache {
 public:
  std::shared_ptr<const Program> Find(const std::string& key,
                                      const std::function<void(Program*)>& build) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return order_.front().second;
    }
    auto program = std::make_shared<Program>();
    build(program.get());
    order_.emplace_front(key, std::move(program));
    entries_[key] = order_.begin();
    if (order_.size() > kCachedPrograms) {
      entries_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const Program>>;

  std::mutex mutex_;
  std::list<Entry> order_;
  std::unordered_map<std::string, std::list<Entry>::iterator> entries_;
};

}  // namespace

size_t BytesOf(MPSDataType type) {
  return type == MPSDataTypeFloat16 || type == kBFloat16Type ? 2 : 4;
}

Program::Program() : graph_([[MPSGraph alloc] init]) {}

Program::~Program() {
  for (const std::vector<Port>* ports : {&arguments_, &results_}) {
    for (const Port& port : *ports) {
      [port.tensor release];
      [port.shape release];
    }
  }
  [graph_ release];
}

Value Program::AddArgument(int index, const Extents& shape, MPSDataType type) {
  if (Count(shape) == 0) return 0;
  CheckSize(shape, sizeof(float));  // it is converted to Float32
  // A scalar is passed to MPSGraph as a vector of one element.
  MPSShape* dims = MakeShape(shape.empty() ? Extents{1} : shape);
  MPSGraphTensor* tensor = [graph_ placeholderWithShape:dims dataType:type name:nil];
  arguments_.push_back({index, [tensor retain], [dims retain], type, Count(shape) * BytesOf(type)});
  if (type == MPSDataTypeFloat32 || type == MPSDataTypeInt32) return {graph_, tensor};
  return {graph_, [graph_ castTensor:tensor toType:MPSDataTypeFloat32 name:@"argument"]};
}

void Program::AddResult(int index, const Value& value, const Extents& shape, MPSDataType type) {
  if (Count(shape) == 0) return;
  CheckSize(shape, sizeof(float));
  const Extents extents = shape.empty() ? Extents{1} : shape;
  MPSGraphTensor* tensor = BroadcastTo(graph_, value, extents).tensor();
  if (type != MPSDataTypeFloat32) {
    tensor = [graph_ castTensor:tensor toType:type name:@"result"];
  }
  // A result that is a view of another tensor may never be written.
  tensor = [graph_ identityWithTensor:tensor name:nil];
  results_.push_back(
      {index, [tensor retain], [MakeShape(extents) retain], type, Count(shape) * BytesOf(type)});
}

std::shared_ptr<const Program> FindProgram(const std::string& key,
                                           const std::function<void(Program*)>& build) {
  static auto* const cache = new Cache;  // never destroyed: calls may run at exit
  return cache->Find(key, build);
}

}  // namespace tf_lstm_ops::metal
