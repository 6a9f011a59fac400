/* Calls of ONNX Runtime's C API between two readings of the clock, for
 * one_row/onnxruntime_c.py, which opens the session and makes the arrays.
 *
 * Two sets of arrays take turns. The states that a call writes are those that
 * the next one reads.
 */
#define _POSIX_C_SOURCE 200112L

#include <stddef.h>
#include <time.h>

/* OrtApi's function Run. It returns null if it succeeds. */
typedef void* (*Run)(void* session, const void* options,
                     const char* const* input_names, const void* const* inputs,
                     size_t input_count, const char* const* output_names,
                     size_t output_count, void** outputs);

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Measures `batches` times of `batch` calls: writes the seconds of a call to
 * times[batches]. `inputs` and `outputs` are the tensors of both sets, one set
 * after the other. `turn` is the set of the next call. Returns the status of
 * the first call that fails, or null. */
void* Measure(Run run, void* session, const char* const* input_names,
              const void* const* inputs, size_t input_count,
              const char* const* output_names, void** outputs,
              size_t output_count, long batches, long batch, int* turn,
              double* times) {
  for (long i = 0; i < batches; ++i) {
    const double begin = Now();
    for (long k = 0; k < batch; ++k) {
      const size_t set = (size_t)*turn;
      void* status = run(session, NULL, input_names, inputs + set * input_count,
                         input_count, output_names, output_count,
                         outputs + set * output_count);
      if (status) return status;
      *turn = 1 - *turn;
    }
    times[i] = (Now() - begin) / (double)batch;
  }
  return NULL;
}
