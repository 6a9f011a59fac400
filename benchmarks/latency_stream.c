/* The time of one step of a stream in C: nanoseconds, printed as JSON.
 *
 *     latency_stream FILE CALLS BATCH
 *
 * FILE is the file of a session. Makes CALLS calls of one step of one row and
 * reads the clock before and after every BATCH of them. A measured time is that
 * of a batch divided by BATCH. With BATCH 1 it includes the time of reading the
 * clock. p50 and p99 are percentiles of the measured times, max is the longest.
 */
#define _POSIX_C_SOURCE 200112L

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tf_lstm_ops.h"

enum { kInputs = 64, kWarmCalls = 1000 };

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Inputs from -1 to 1, the same in every run. */
static void Fill(float* x, int64_t count) {
  uint32_t number = 1;
  for (int64_t i = 0; i < count; ++i) {
    number = 1664525u * number + 1013904223u;
    x[i] = (float)(number >> 8) / 8388608.0f - 1.0f;
  }
}

/* Computes `count` steps. Returns 0 if one of them fails. */
static int Run(tf_lstm_ops_stream* stream, const float* x, int64_t inputs,
               float* y, int64_t outputs, long count,
               tf_lstm_ops_error* error) {
  for (long i = 0; i < count; ++i) {
    const float* step = x + (i % kInputs) * inputs;
    if (tf_lstm_ops_stream_run(stream, 1, step, inputs, y, outputs, error)) {
      return 0;
    }
  }
  return 1;
}

static int Measure(tf_lstm_ops_stream* stream, int64_t inputs, int64_t outputs,
                   long batches, long batch, tf_lstm_ops_error* error) {
  float* x = malloc((size_t)(kInputs * inputs) * sizeof(float));
  float* y = malloc((size_t)outputs * sizeof(float));
  double* times = malloc((size_t)batches * sizeof(double));
  int ok = x && y && times;
  if (ok) {
    double sum = 0;
    Fill(x, kInputs * inputs);
    ok = Run(stream, x, inputs, y, outputs, kWarmCalls, error);
    for (long i = 0; ok && i < batches; ++i) {
      const double begin = Now();
      ok = Run(stream, x, inputs, y, outputs, batch, error);
      times[i] = (Now() - begin) / (double)batch;
      sum += times[i];
    }
    if (ok) {
      qsort(times, (size_t)batches, sizeof(double), Compare);
      printf(
          "{\"batches\": %ld, \"p50\": %.1f, \"p99\": %.1f, \"max\": %.1f, "
          "\"mean\": %.1f}\n",
          batches, times[(batches - 1) / 2], times[(batches - 1) * 99 / 100],
          times[batches - 1], sum / (double)batches);
    }
  }
  free(x);
  free(y);
  free(times);
  return ok;
}

int main(int argc, char** argv) {
  const long calls = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
  const long batch = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
  tf_lstm_ops_session* session = NULL;
  tf_lstm_ops_stream* stream = NULL;
  tf_lstm_ops_session_info info = {.struct_size = sizeof info};
  tf_lstm_ops_error error = {.struct_size = sizeof error, .text = "no memory"};
  if (batch < 1 || calls < batch || calls > 100000000) {
    fprintf(stderr, "usage: latency_stream FILE CALLS BATCH\n");
    return 2;
  }
  const int ok = !tf_lstm_ops_session_open(argv[1], NULL, &session, &error) &&
                 !tf_lstm_ops_session_get_info(session, &info, &error) &&
                 !tf_lstm_ops_stream_open(session, 1, &stream, &error) &&
                 Measure(stream, info.input_size, info.output_size,
                         calls / batch, batch, &error);
  tf_lstm_ops_stream_close(stream);
  tf_lstm_ops_session_close(session);
  if (!ok) fprintf(stderr, "latency_stream: %s\n", error.text);
  return !ok;
}
