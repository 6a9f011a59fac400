/* Runs a model on a stream of blocks of samples and measures each block.
 *
 *   stream FILE [BLOCK [COUNT]]
 *
 * FILE is the file that tf_lstm_ops.inference.Session.save wrote. A block has
 * BLOCK steps, 64 by default; COUNT blocks are computed, 1000 by default.
 * Feature f of step n is 0.5 sin(2 pi 440 (f + 1) n / 48000). Prints
 * percentiles of the time of a block, and a checksum of the output: the sum of
 * y[k] (k % 31 + 1) for k = 0, 1, ... in the order of computation.
 * README.md in this folder tells how to build the program. It is valid C11 and
 * valid C++17.
 */

#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tf_lstm_ops.h>
#include <time.h>

static const double kStep = 2 * 3.14159265358979323846 * 440 / 48000;
static const long kLargestBlock = 1L << 16;
static const long kLargestCount = 10L * 1000 * 1000;

typedef struct {
  long block;
  long count;
  tf_lstm_ops_session* session;
  tf_lstm_ops_session_info info;
  tf_lstm_ops_stream* stream;
  int64_t x_count;
  int64_t y_count;
  float* x;
  float* y;
  double* microseconds; /* of each block */
  double checksum;
  uint64_t outputs; /* in the checksum */
} Program;

/* Whether a call succeeded; else prints what failed and why. */
static int Succeeded(int32_t code, const char* what,
                     const tf_lstm_ops_error* error) {
  if (code == TF_LSTM_OPS_OK) return 1;
  fprintf(stderr, "stream: cannot %s: %s: %s\n", what,
          tf_lstm_ops_code_text(code), error->text);
  return 0;
}

static tf_lstm_ops_error NewError(void) {
  tf_lstm_ops_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  return error;
}

static int Open(Program* p, const char* path) {
  tf_lstm_ops_error error = NewError();
  int32_t code = tf_lstm_ops_session_open(path, NULL, &p->session, &error);
  if (!Succeeded(code, "open the session", &error)) return 0;
  p->info.struct_size = sizeof p->info;
  code = tf_lstm_ops_session_get_info(p->session, &p->info, &error);
  if (!Succeeded(code, "read the sizes of the session", &error)) return 0;
  code = tf_lstm_ops_stream_open(p->session, 1, &p->stream, &error);
  return Succeeded(code, "open a stream", &error);
}

static int Allocate(Program* p) {
  p->x_count = p->block * p->info.input_size;
  p->y_count = (p->info.returns_sequence ? p->block : 1) * p->info.output_size;
  p->x = (float*)calloc((size_t)p->x_count, sizeof *p->x);
  p->y = (float*)calloc((size_t)p->y_count, sizeof *p->y);
  p->microseconds = (double*)calloc((size_t)p->count, sizeof *p->microseconds);
  if (p->x != NULL && p->y != NULL && p->microseconds != NULL) return 1;
  fprintf(stderr, "stream: no memory for %ld blocks of %ld steps\n", p->count,
          p->block);
  return 0;
}

static int RunBlock(Program* p) {
  tf_lstm_ops_error error = NewError();
  const int32_t code = tf_lstm_ops_stream_run(
      p->stream, p->block, p->x, p->x_count, p->y, p->y_count, &error);
  return Succeeded(code, "run the stream", &error);
}

/* Computes one block of zeros, then begins again: the first block is slower. */
static int WarmUp(Program* p) {
  tf_lstm_ops_error error = NewError();
  if (!RunBlock(p)) return 0;
  const int32_t code = tf_lstm_ops_stream_reset(p->stream, NULL, 0, &error);
  return Succeeded(code, "reset the stream", &error);
}

/* Writes the samples of a block. A program for audio would read them. */
static void Generate(Program* p, long block) {
  for (long n = 0; n < p->block; ++n) {
    const double step = (double)block * (double)p->block + (double)n;
    float* row = p->x + n * p->info.input_size;
    for (int64_t f = 0; f < p->info.input_size; ++f) {
      row[f] = (float)(0.5 * sin(kStep * (double)(f + 1) * step));
    }
  }
}

static void Consume(Program* p) {
  for (int64_t k = 0; k < p->y_count; ++k, ++p->outputs) {
    p->checksum += (double)p->y[k] * (double)(p->outputs % 31 + 1);
  }
}

static double Microseconds(void) {
  struct timespec now;
#if defined(_WIN32)
  timespec_get(&now, TIME_UTC);
#else
  clock_gettime(CLOCK_MONOTONIC, &now);
#endif
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static int Run(Program* p) {
  if (!WarmUp(p)) return 0;
  for (long block = 0; block < p->count; ++block) {
    Generate(p, block);
    const double begin = Microseconds();
    if (!RunBlock(p)) return 0;
    p->microseconds[block] = Microseconds() - begin;
    Consume(p);
  }
  return 1;
}

static int Compare(const void* a, const void* b) {
  const double left = *(const double*)a;
  const double right = *(const double*)b;
  return (left > right) - (left < right);
}

/* The smallest time that `percent` of the blocks do not exceed. */
static double Percentile(const Program* p, long percent) {
  return p->microseconds[(p->count * percent + 99) / 100 - 1];
}

static int Print(Program* p) {
  qsort(p->microseconds, (size_t)p->count, sizeof *p->microseconds, Compare);
  printf("%ld blocks of %ld steps with %s\n", p->count, p->block,
         tf_lstm_ops_selected_instruction_set());
  printf("us a block: p50 %.2f, p90 %.2f, p99 %.2f, max %.2f\n",
         Percentile(p, 50), Percentile(p, 90), Percentile(p, 99),
         Percentile(p, 100));
  printf("checksum: %.17g\n", p->checksum);
  if (fflush(stdout) == 0 && !ferror(stdout)) return 1;
  fprintf(stderr, "stream: cannot write the output\n");
  return 0;
}

static void Close(Program* p) {
  free(p->microseconds);
  free(p->y);
  free(p->x);
  tf_lstm_ops_stream_close(p->stream);
  tf_lstm_ops_session_close(p->session);
}

/* Reads the whole number `text`, from 1 to `largest`, named `name`. */
static int ReadNumber(const char* text, const char* name, long largest,
                      long* number) {
  char* end = NULL;
  *number = strtol(text, &end, 10);
  if (end != text && *end == '\0' && *number >= 1 && *number <= largest) {
    return 1;
  }
  fprintf(stderr, "stream: %s must be a number from 1 to %ld, got %s\n", name,
          largest, text);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "usage: stream FILE [BLOCK [COUNT]]\n");
    return 2;
  }
  Program program;
  memset(&program, 0, sizeof program);
  program.block = 64;
  program.count = 1000;
  if (argc > 2 &&
      !ReadNumber(argv[2], "BLOCK", kLargestBlock, &program.block)) {
    return 2;
  }
  if (argc > 3 &&
      !ReadNumber(argv[3], "COUNT", kLargestCount, &program.count)) {
    return 2;
  }
  const int is_done = Open(&program, argv[1]) && Allocate(&program) &&
                      Run(&program) && Print(&program);
  Close(&program);
  return is_done ? 0 : 1;
}
