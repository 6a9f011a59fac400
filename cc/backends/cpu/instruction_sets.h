// The instruction sets of the processor architecture, the best one last.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_INSTRUCTION_SETS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_INSTRUCTION_SETS_H_

// X(name, set, bfloat16) for each: the name that TF_LSTM_OPS_SIMD has, and the
// namespaces of the functions of all layers and of those of bfloat16 layers.
// All tables are made from this list, so they have the same order.
#if defined(__x86_64__)
#define TF_LSTM_OPS_INSTRUCTION_SETS(X)          \
  X("x86-64-v2", x86_64_v2, x86_64_v2)           \
  X("x86-64-v3", x86_64_v3, x86_64_v3)           \
  X("x86-64-v4", x86_64_v4, x86_64_v4)           \
  X("x86-64-v4-bf16", x86_64_v4, x86_64_v4_bf16) \
  X("x86-64-v4-amx", x86_64_v4, x86_64_v4_amx)
#elif defined(__aarch64__)
#define TF_LSTM_OPS_INSTRUCTION_SETS(X) \
  X("baseline", baseline, baseline)     \
  X("armv8-bf16", baseline, armv8_bf16)
#else
#define TF_LSTM_OPS_INSTRUCTION_SETS(X) X("baseline", baseline, baseline)
#endif

#endif  // TF_LSTM_OPS_BACKENDS_CPU_INSTRUCTION_SETS_H_
