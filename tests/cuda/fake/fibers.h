// The threads of a cooperative launch as fibers of one host thread. Each runs
// until it must wait. Without a barrier, the first ones would read memory that
// is not written yet.
//
// Environment variables: FAKE_REVERSE=1, the last thread runs first;
// FAKE_NO_BARRIERS=1, barriers of clusters and blocks do not wait.
#ifndef TF_LSTM_OPS_TESTS_CUDA_FAKE_FIBERS_H_
#define TF_LSTM_OPS_TESTS_CUDA_FAKE_FIBERS_H_

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace fake {

struct Index {
  unsigned x;
};
inline thread_local Index gridDim, blockIdx, blockDim, threadIdx;

constexpr unsigned kWarp = 32;
constexpr size_t kStack = 64 * 1024;

// The operands of all lanes of a warp in one instruction.
struct Fragments {
  uint32_t a[kWarp][4], b[kWarp][2];
};

class Grid {
 public:
  using Thread = void (*)(const void* arguments);

  Grid(Thread thread, const void* arguments, unsigned grid, unsigned block,
       unsigned shared_bytes, unsigned cluster)
      : thread_(thread),
        arguments_(arguments),
        cluster_(std::max(cluster, 1u)),
        fibers_(size_t{grid} * block),
        blocks_(grid),
        clusters_(grid / cluster_),
        warps_(size_t{grid} * block / kWarp) {
    gridDim.x = grid;
    blockDim.x = block;
    bytes_ = fibers_.size() * kStack;
    stacks_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (stacks_ == MAP_FAILED) Fail("no memory for stacks");
    for (Block& b : blocks_) {
      b.barrier.expected = block;
      // Uninitialised: NaN.
      const size_t words = (shared_bytes + 15) / 16;
      b.shared = std::make_unique<Line[]>(words);
      std::fill_n(reinterpret_cast<char*>(b.shared.get()), words * 16, '\xff');
    }
    for (Warp& w : warps_) w.barrier.expected = kWarp;
    for (Barrier& c : clusters_) c.expected = cluster_ * block;
  }
  ~Grid() { munmap(stacks_, bytes_); }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  void Run() {
    current_ = this;
    for (size_t n = 0; n < fibers_.size(); ++n) Prepare(n);
    // A warp runs as long as it can, then its block, so that all others are
    // late.
    for (size_t idle = 0; left_ > 0; ++idle) {
      if (idle == kMostIdle) Fail("a deadlock of threads");
      for (size_t b = 0; b < blocks_.size(); ++b) {
        if (RunBlock(Order(b, blocks_.size()))) idle = 0;
      }
    }
  }

  static Grid& Current() { return *current_; }

  void SyncBlock() {
    if (has_barriers_) Wait(&blocks_[blockIdx.x].barrier);
  }
  void* Shared() { return blocks_[blockIdx.x].shared.get(); }

  void ArriveInCluster() {
    Barrier& barrier = clusters_[blockIdx.x / cluster_];
    fibers_[Number()].cluster_generation = barrier.generation;
    Arrive(&barrier);
  }
  void WaitForCluster() {
    Barrier& barrier = clusters_[blockIdx.x / cluster_];
    Fiber& fiber = fibers_[Number()];
    if (has_barriers_) WaitForNext(&barrier, fiber.cluster_generation);
  }
  // The address in another block of the cluster that corresponds to `own`.
  template <class T>
  T* InCluster(T* own, unsigned block) {
    const size_t other = blockIdx.x / cluster_ * cluster_ + block;
    if (block >= cluster_) Fail("no such block in the cluster");
    if (has_barriers_ && blocks_[other].threads_done > 0) {
      Fail("that block has ended");
    }
    const auto offset =
        reinterpret_cast<char*>(own) -
        reinterpret_cast<char*>(blocks_[blockIdx.x].shared.get());
    return reinterpret_cast<T*>(
        reinterpret_cast<char*>(blocks_[other].shared.get()) + offset);
  }

  // Exchanges the lanes' fragments; returns once all lanes have arrived.
  const Fragments& Exchange(const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    const size_t thread = Number();
    Warp& warp = warps_[thread / kWarp];
    // Two sets in turn: a lane may be one instruction ahead of lanes that still
    // read.
    Fragments& all = warp.fragments[fibers_[thread].instructions++ % 2];
    for (int i = 0; i < 4; ++i) all.a[thread % kWarp][i] = a[i];
    for (int i = 0; i < 2; ++i) all.b[thread % kWarp][i] = b[i];
    Wait(&warp.barrier);
    return all;
  }

  // Lets other threads run while this one polls. Returns whether barriers wait.
  bool Spin() {
    if (!has_barriers_) return false;
    Fiber& fiber = fibers_[Number()];
    fiber.spins = true;
    swapcontext(&fiber.context, &scheduler_);
    return true;
  }

 private:
  static constexpr size_t kMostIdle = 1000;

  struct alignas(16) Line {
    char bytes[16];
  };
  struct Barrier {
    unsigned expected = 0, arrived = 0, generation = 0;
  };
  struct Block {
    Barrier barrier;
    std::unique_ptr<Line[]> shared;
    unsigned threads_done = 0;
  };
  struct Warp {
    Barrier barrier;
    Fragments fragments[2];
  };
  struct Fiber {
    ucontext_t context;
    const Barrier* barrier = nullptr;
    unsigned generation = 0, cluster_generation = 0, instructions = 0;
    bool done = false, spins = false;

    bool Waits() const {
      return barrier != nullptr && barrier->generation == generation;
    }
  };

  [[noreturn]] static void Fail(const char* what) {
    std::fprintf(stderr, "fake CUDA: %s\n", what);
    std::abort();
  }

  static size_t Number() {
    return size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  }

  static void Start() {
    Grid& grid = Current();
    const size_t number = Number();
    grid.thread_(grid.arguments_);
    grid.fibers_[number].done = true;
    ++grid.blocks_[blockIdx.x].threads_done;
  }

  // The n-th of `count` in the order of execution.
  size_t Order(size_t n, size_t count) const {
    return reverse_ ? count - 1 - n : n;
  }

  // These return whether any thread made progress.
  bool RunBlock(size_t block) {
    const size_t warps = blockDim.x / kWarp;
    bool ran = false, goes_on = true;
    while (goes_on) {
      goes_on = false;
      for (size_t w = 0; w < warps; ++w) {
        goes_on |= RunWarp(block * warps + Order(w, warps));
      }
      ran |= goes_on;
    }
    return ran;
  }

  bool RunWarp(size_t warp) {
    bool ran = false, goes_on = true;
    while (goes_on) {
      goes_on = false;
      for (size_t lane = 0; lane < kWarp; ++lane) {
        goes_on |= RunThread(&fibers_[warp * kWarp + Order(lane, kWarp)]);
      }
      ran |= goes_on;
    }
    return ran;
  }

  bool RunThread(Fiber* fiber) {
    if (fiber->done || fiber->Waits()) return false;
    Resume(fiber);
    if (fiber->done) --left_;
    return !fiber->spins;
  }

  void Prepare(size_t n) {
    ucontext_t& context = fibers_[n].context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks_ + n * kStack;
    context.uc_stack.ss_size = kStack;
    context.uc_link = &scheduler_;
    makecontext(&context, Start, 0);
  }

  void Resume(Fiber* fiber) {
    const size_t n = fiber - fibers_.data();
    blockIdx.x = static_cast<unsigned>(n / blockDim.x);
    threadIdx.x = static_cast<unsigned>(n % blockDim.x);
    fiber->barrier = nullptr;
    fiber->spins = false;
    swapcontext(&scheduler_, &fiber->context);
  }

  // Returns whether all have arrived.
  static bool Arrive(Barrier* barrier) {
    if (++barrier->arrived < barrier->expected) return false;
    barrier->arrived = 0;
    ++barrier->generation;
    return true;
  }
  void WaitForNext(Barrier* barrier, unsigned generation) {
    if (barrier->generation != generation) return;
    Fiber& fiber = fibers_[Number()];
    fiber.generation = generation;
    fiber.barrier = barrier;
    swapcontext(&fiber.context, &scheduler_);
  }
  void Wait(Barrier* barrier) {
    const unsigned generation = barrier->generation;
    if (!Arrive(barrier)) WaitForNext(barrier, generation);
  }

  inline static thread_local Grid* current_ = nullptr;

  const bool has_barriers_ = std::getenv("FAKE_NO_BARRIERS") == nullptr;
  const bool reverse_ = std::getenv("FAKE_REVERSE") != nullptr;
  const Thread thread_;
  const void* const arguments_;
  const unsigned cluster_;  // blocks of each
  std::vector<Fiber> fibers_;
  std::vector<Block> blocks_;
  std::vector<Barrier> clusters_;
  std::vector<Warp> warps_;
  size_t left_ = fibers_.size();  // not done
  ucontext_t scheduler_;
  char* stacks_;
  size_t bytes_;
};

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_CUDA_FAKE_FIBERS_H_
