/* One more token of each of several texts through the whole transformer, with keys and values kept.

The formulas are those of gpt_fused.py, whose `step` does the same with numpy. A call takes some of the rows through all
layers on one thread; callers share rows out. The keys and values of a row may lie anywhere. What comes out of a row does not depend on the rows beside it: every
number is summed in one order. All is float32, and nothing is allocated here.

Matrices are packed: PANEL columns at a time, for each input the PANEL numbers side by side, zeros behind the last column.
A panel then stays in the cache while all rows pass, and weights come from memory once, in the order they lie there. */

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Vectors of W floats, and tiles of ROWS × PANEL sums that stay in registers. */
#if defined(__AVX512F__)
#define W 16
#define ROWS 8
#elif defined(__AVX__)
#define W 8
#define ROWS 6
#else
#define W 4
#define ROWS 4
#endif
#define PANEL (2 * W)
#define LINE 16 /* floats that come from memory together */
#define LOG2E 1.44269504088896341f

typedef float vec __attribute__((vector_size(4 * W), aligned(4), may_alias));

long panel(void) { return PANEL; }

/* e^x to about 1e-7, by 2^whole · Σ (rest ln 2)^k / k!, |rest| ≤ 1/2. */
static inline float power(float x) {
    x *= LOG2E;
    x = x < -126.0f ? -126.0f : x;
    x = x > 126.0f ? 126.0f : x;
    float whole = rintf(x), rest = x - whole;
    float sum = 1.5403530e-4f;
    sum = sum * rest + 1.3333558e-3f;
    sum = sum * rest + 9.6181291e-3f;
    sum = sum * rest + 5.5504109e-2f;
    sum = sum * rest + 2.4022651e-1f;
    sum = sum * rest + 6.9314718e-1f;
    sum = sum * rest + 1.0f;
    union {
        int32_t bits;
        float value;
    } two = {((int32_t)whole + 127) << 23};
    return sum * two.value;
}

static float most_of(const float *x, long count) {
    float lanes[W], most;
    long i = 0;
    for (int l = 0; l < W; l++) lanes[l] = -INFINITY;
    for (; i + W <= count; i += W)
        for (int l = 0; l < W; l++) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
    for (; i < count; i++) lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
    most = lanes[0];
    for (int l = 1; l < W; l++) most = lanes[l] > most ? lanes[l] : most;
    return most;
}

/* ---- products: c (rows × columns) = a (rows × depth) times a packed matrix, or added to what c holds ----

While a tile is summed, its share of the panel that comes `next` is on its way from memory; behind the last panel, what
is asked for does not matter. */

#define TILE(NAME, COUNT)                                                                                              \
    static inline void NAME(const float *b, const float *a, long a_row, float *c, long c_row, long depth, int add,     \
                            const float *next) {                                                                       \
        vec sums[COUNT][2];                                                                                            \
        for (int r = 0; r < COUNT; r++) sums[r][0] = sums[r][1] = (vec){0};                                            \
        for (long k = 0; k < depth; k++) {                                                                             \
            __builtin_prefetch(next + k * LINE, 0, 2);                                                                 \
            vec left = *(const vec *)(b + k * PANEL), right = *(const vec *)(b + k * PANEL + W);                       \
            for (int r = 0; r < COUNT; r++) {                                                                          \
                sums[r][0] += a[r * a_row + k] * left;                                                                 \
                sums[r][1] += a[r * a_row + k] * right;                                                                \
            }                                                                                                          \
        }                                                                                                              \
        for (int r = 0; r < COUNT; r++) {                                                                              \
            vec *to = (vec *)(c + r * c_row), *behind = (vec *)(c + r * c_row + W);                                    \
            if (add) sums[r][0] += *to, sums[r][1] += *behind;                                                         \
            *to = sums[r][0], *behind = sums[r][1];                                                                    \
        }                                                                                                              \
    }
TILE(tile, ROWS)
TILE(pair, 2)
TILE(line, 1)

static void product(const float *packed, const float *a, long a_row, float *c, long c_row, long rows, long depth,
                    long columns, int add) {
    for (long j = 0; j < columns; j += PANEL, packed += depth * PANEL) {
        const float *next = packed + depth * PANEL;
        long r = 0;
        for (; r + ROWS <= rows; r += ROWS, next += depth * LINE)
            tile(packed, a + r * a_row, a_row, c + r * c_row + j, c_row, depth, add, next);
        for (; r + 2 <= rows; r += 2) pair(packed, a + r * a_row, a_row, c + r * c_row + j, c_row, depth, add, next);
        for (; r < rows; r++) line(packed, a + r * a_row, a_row, c + r * c_row + j, c_row, depth, add, next);
    }
}

/* y = x / √(|x|² + n ε) */
static inline void unit(const float *x, float *y, long n, float epsilon) {
    float sum = 0;
    for (long i = 0; i < n; i++) sum += x[i] * x[i];
    float scale = 1.0f / sqrtf(sum + (float)n * epsilon);
    for (long i = 0; i < n; i++) y[i] = x[i] * scale;
}

/* ---- attention of one query to `seen` keys, and the mixture of their values; keys and values lie side by side ----

With many texts these come from far away, and in pieces: while keys are looked at, the values are on their way, and while
values are mixed, the keys that come `next`. */

static inline void ask_for(const float *x, long count) {
    for (long i = 0; i < count; i += LINE) __builtin_prefetch(x + i, 0, 2);
}

static inline float dot(const float *a, const float *b, long n) {
    vec sums = {0};
    long i = 0;
    for (; i + W <= n; i += W) sums += *(const vec *)(a + i) * *(const vec *)(b + i);
    float sum = 0;
    for (int l = 0; l < W; l++) sum += sums[l];
    for (; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void attend(const float *q, const float *keys, const float *values, float *scores, float *out, long seen,
                   long d, const float *next) {
    for (long j = 0; j < seen; j++) {
        ask_for(values + j * d, d);
        scores[j] = dot(q, keys + j * d, d);
    }
    float most = most_of(scores, seen), sum = 0;
    for (long j = 0; j < seen; j++) scores[j] = power(scores[j] - most);
    for (long j = 0; j < seen; j++) sum += scores[j];
    float over = 1.0f / sum;
    long c = 0;
    for (; c + 4 * W <= d; c += 4 * W) {
        vec sums[4] = {{0}};
        for (long j = 0; j < seen; j++) {
            ask_for(next + j * d + c, 4 * W);
            for (int n = 0; n < 4; n++) sums[n] += scores[j] * *(const vec *)(values + j * d + c + n * W);
        }
        for (int n = 0; n < 4; n++) *(vec *)(out + c + n * W) = sums[n] * over;
    }
    for (; c + W <= d; c += W) {
        vec sums = {0};
        for (long j = 0; j < seen; j++) sums += scores[j] * *(const vec *)(values + j * d + c);
        *(vec *)(out + c) = sums * over;
    }
    for (; c < d; c++) {
        float mixed = 0;
        for (long j = 0; j < seen; j++) mixed += scores[j] * values[j * d + c];
        out[c] = mixed * over;
    }
}

typedef struct {
    long layers, dimension, heads, key_heads, width, mlp, vocabulary, context;
    long wide, qkv_wide, inner_wide, output_wide; /* of D, (H + 2K) d, 2M or M, and V: multiples of PANEL */
    long gated;
    float epsilon;
} sizes_t;

/* Floats of scratch memory for each row. */
long scratch(const sizes_t *s) {
    return 2 * s->wide + s->dimension + s->qkv_wide + s->inner_wide + s->mlp + s->context + s->output_wide;
}

/* Log-probabilities (rows × V) from the input x (rows × D) of rows `first` to `first + count`, each at its place.

`weights` holds for each layer qkv, the gains of q and k (or none), o, and (where mlp is not 0) inner and down; then the
output. `turns` is context × d/2 cosines and sines. `texts` says where the keys of each row begin; from there it is
`strides[2 row]` floats to the values, as many to the keys of the next layer, and `strides[2 row + 1]` from one head to
the next, in which keys stand side by side. */
void step(const sizes_t *s, const float *const *weights, const float *turns, const float *x, const int64_t *places,
          float *const *texts, const int64_t *strides, float *memory, float *log_probs, long first, long count) {
    long D = s->dimension, H = s->heads, K = s->key_heads, d = s->width, M = s->mlp, V = s->vocabulary, group = H / K;
    memory += first * scratch(s);
    float *stream = memory, *mixed = stream + count * s->wide, *read = mixed + count * s->wide,
          *parts = read + count * D, *inner = parts + count * s->qkv_wide, *gated = inner + count * s->inner_wide,
          *scores = gated + count * M, *logits = scores + count * s->context;
    for (long r = 0; r < count; r++) memcpy(stream + r * s->wide, x + (first + r) * D, (size_t)D * sizeof(float));
    for (long n = 0; n < s->layers; n++, weights += 5) {
        for (long r = 0; r < count; r++) unit(stream + r * s->wide, read + r * D, D, s->epsilon);
        product(weights[0], read, D, parts, s->qkv_wide, count, D, s->qkv_wide, 0);
        for (long r = 0; r < count; r++) {
            float *q = parts + r * s->qkv_wide, *v = q + (H + K) * d;
            long place = places[first + r], all = strides[2 * (first + r)], room = strides[2 * (first + r) + 1];
            float *keys = texts[first + r] + 2 * n * all, *values = keys + all;
            const float *turn = turns + place * d;
            for (long h = 0; h < H + K; h++) {
                float *head = q + h * d;
                if (weights[1]) {
                    const float *gain = weights[1] + h * d;
                    unit(head, head, d, s->epsilon);
                    for (long i = 0; i < d; i++) head[i] *= gain[i];
                }
                for (long i = 0; i < d; i += 2) {
                    float a = head[i], b = head[i + 1];
                    head[i] = a * turn[i] - b * turn[i + 1];
                    head[i + 1] = b * turn[i] + a * turn[i + 1];
                }
            }
            for (long h = 0; h < K; h++) {
                float *mine = keys + h * room, *worth = values + h * room;
                memcpy(mine + place * d, q + (H + h) * d, (size_t)d * sizeof(float));
                memcpy(worth + place * d, v + h * d, (size_t)d * sizeof(float));
                for (long g = h * group; g < (h + 1) * group; g++)
                    attend(q + g * d, mine, worth, scores + r * s->context, mixed + r * s->wide + g * d, place + 1, d,
                           mine + room);
            }
        }
        product(weights[2], mixed, s->wide, stream, s->wide, count, D, s->wide, 1);
        if (!M) continue;
        for (long r = 0; r < count; r++) unit(stream + r * s->wide, read + r * D, D, s->epsilon);
        product(weights[3], read, D, inner, s->inner_wide, count, D, s->inner_wide, 0);
        for (long r = 0; r < count; r++) {
            const float *a = inner + r * s->inner_wide, *b = a + M;
            float *to = gated + r * M;
            if (s->gated)
                for (long i = 0; i < M; i++) to[i] = a[i] / (1.0f + power(-a[i])) * b[i];
            else
                for (long i = 0; i < M; i++) to[i] = a[i] < 0 ? 0 : a[i] * a[i];
        }
        product(weights[4], gated, M, stream, s->wide, count, M, s->wide, 1);
    }
    for (long r = 0; r < count; r++) unit(stream + r * s->wide, read + r * D, D, s->epsilon);
    product(weights[0], read, D, logits, s->output_wide, count, D, s->output_wide, 0);
    for (long r = 0; r < count; r++) {
        const float *from = logits + r * s->output_wide;
        float *to = log_probs + (first + r) * V, most = most_of(from, V);
        float sum = 0;
        for (long i = 0; i < V; i++) sum += power(from[i] - most);
        float total = most + logf(sum);
        for (long i = 0; i < V; i++) to[i] = from[i] - total;
    }
}
