/* Finds speech with Silero VAD, without Python.
 *
 *   silero_vad FILE AUDIO
 *
 * FILE is the file that `silero_vad.py --save FILE` wrote. AUDIO has the
 * samples of one channel, 16000 a second, as float32 without a header. Prints
 * the probability of speech in each chunk of 32 ms; the last one is filled with
 * zeros. Prints the time of a chunk to the standard error. README.md in this
 * folder tells how to build the program. It is valid C11 and valid C++17.
 */

#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tf_lstm_ops.h>
#include <time.h>

/* A chunk follows the last samples of the chunk before it. */
enum { kContext = 64, kChunk = 512, kSamples = kContext + kChunk };

typedef struct {
  tf_lstm_ops_session* session;
  tf_lstm_ops_stream* stream;
  FILE* audio;
  float samples[kSamples];
  double microseconds; /* of all chunks */
  long chunks;
} Program;

/* Whether a call succeeded; else prints what failed and why. */
static int Succeeded(int32_t code, const char* what,
                     const tf_lstm_ops_error* error) {
  if (code == TF_LSTM_OPS_OK) return 1;
  fprintf(stderr, "silero_vad: cannot %s: %s: %s\n", what,
          tf_lstm_ops_code_text(code), error->text);
  return 0;
}

static tf_lstm_ops_error NewError(void) {
  tf_lstm_ops_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  return error;
}

static int OpenStream(Program* p, const char* path) {
  tf_lstm_ops_error error = NewError();
  tf_lstm_ops_session_info info;
  int32_t code = tf_lstm_ops_session_open(path, NULL, &p->session, &error);
  if (!Succeeded(code, "open the session", &error)) return 0;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  code = tf_lstm_ops_session_get_info(p->session, &info, &error);
  if (!Succeeded(code, "read the sizes of the session", &error)) return 0;
  if (info.input_size != kSamples || info.output_size != 1 ||
      !info.returns_sequence) {
    fprintf(stderr, "silero_vad: %s is not a file of silero_vad.py\n", path);
    return 0;
  }
  code = tf_lstm_ops_stream_open(p->session, 1, &p->stream, &error);
  return Succeeded(code, "open a stream", &error);
}

static int OpenAudio(Program* p, const char* path) {
  p->audio = fopen(path, "rb");
  if (p->audio != NULL) return 1;
  fprintf(stderr, "silero_vad: cannot open %s\n", path);
  return 0;
}

/* Reads the samples of a chunk behind those of the chunk before it. Returns
 * whether there are any. */
static int ReadChunk(Program* p) {
  size_t count;
  memmove(p->samples, p->samples + kChunk, kContext * sizeof(float));
  count = fread(p->samples + kContext, sizeof(float), kChunk, p->audio);
  memset(p->samples + kContext + count, 0, (kChunk - count) * sizeof(float));
  return count > 0;
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
  while (ReadChunk(p)) {
    tf_lstm_ops_error error = NewError();
    float probability;
    const double begin = Microseconds();
    const int32_t code = tf_lstm_ops_stream_run(
        p->stream, 1, p->samples, kSamples, &probability, 1, &error);
    p->microseconds += Microseconds() - begin;
    ++p->chunks;
    if (!Succeeded(code, "run the stream", &error)) return 0;
    printf("%.9g\n", (double)probability);
  }
  if (ferror(p->audio)) {
    fprintf(stderr, "silero_vad: cannot read the audio\n");
    return 0;
  }
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "silero_vad: cannot write the output\n");
    return 0;
  }
  if (p->chunks > 0) {
    fprintf(stderr, "%ld chunks, %.1f us each, with %s\n", p->chunks,
            p->microseconds / (double)p->chunks,
            tf_lstm_ops_selected_instruction_set());
  }
  return 1;
}

static void Close(Program* p) {
  if (p->audio != NULL) fclose(p->audio);
  tf_lstm_ops_stream_close(p->stream);
  tf_lstm_ops_session_close(p->session);
}

int main(int argc, char** argv) {
  Program program;
  int is_done;
  if (argc != 3) {
    fprintf(stderr, "usage: silero_vad FILE AUDIO\n");
    return 2;
  }
  memset(&program, 0, sizeof program);
  is_done = OpenStream(&program, argv[1]) && OpenAudio(&program, argv[2]) &&
            Run(&program);
  Close(&program);
  return is_done ? 0 : 1;
}
