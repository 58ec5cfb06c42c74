/* What a training step of the transformer does besides large products, each part in one pass over memory.

The formulas are those of plain.py, which does the same with torch. One function serves one thread; callers share rows
out. All arrays are contiguous float32 unless a stride says otherwise, and nothing is allocated here.

Sums may be reordered (-fassociative-math), so that loops become vector instructions; what is not a number stays so.
*/

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Vectors of W floats, and tiles of ROWS × 2 W sums that stay in registers. */
#if defined(__AVX512F__)
#define W 16
#define ROWS 8
#elif defined(__AVX__)
#define W 8
#define ROWS 4
#else
#define W 4
#define ROWS 4
#endif
#define BLOCK 16 /* queries at a time; a multiple of ROWS and of W */
#define LOG2E 1.44269504088896341f
#define LN2 0.693147180559945309f

typedef float vec __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef float *restrict out_t;
typedef const float *restrict in_t;

/* 2^x to about 1e-7, by 2^whole · Σ (rest ln 2)^k / k!, |rest| ≤ 1/2. */
static inline float exp2_of(float x) {
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
    } power = {((int32_t)whole + 127) << 23};
    return sum * power.value;
}

/* The same for W numbers at most a little above 0. */
static inline vec exp2_below(vec x) {
    ivec low = x < -126.0f;
    x = (vec)(((ivec)x & ~low) | ((ivec)(-126.0f - (vec){0}) & low));
    ivec whole = __builtin_convertvector(x - 0.5f, ivec); /* towards zero, so to the nearest */
    vec rest = x - __builtin_convertvector(whole, vec);
    vec sum = 1.5403530e-4f * rest + 1.3333558e-3f;
    sum = sum * rest + 9.6181291e-3f;
    sum = sum * rest + 5.5504109e-2f;
    sum = sum * rest + 2.4022651e-1f;
    sum = sum * rest + 6.9314718e-1f;
    sum = sum * rest + 1.0f;
    return sum * (vec)((whole + 127) << 23);
}

/* The largest of `count` numbers, W at a time: where NaN counts, a compiler makes no vectors of it. */
static inline float most_of(const float *x, long count) {
    float most = -INFINITY;
    vec lanes = most - (vec){0};
    long i = 0;
    for (; i + W <= count; i += W) {
        vec here = *(const vec *)(x + i);
        ivec more = here > lanes;
        lanes = (vec)(((ivec)here & more) | ((ivec)lanes & ~more));
    }
    for (; i < count; i++) most = x[i] > most ? x[i] : most;
    for (int step = W / 2; step; step /= 2)
        for (int l = 0; l < step; l++) lanes[l] = lanes[l + step] > lanes[l] ? lanes[l + step] : lanes[l];
    return lanes[0] > most ? lanes[0] : most;
}

/* ---- norm: y = x r, r = 1/√(mean x² + ε) ---- */

void norm(in_t x, out_t y, out_t r, long rows, long width, float epsilon) {
    for (long n = 0; n < rows; n++) {
        in_t from = x + n * width;
        out_t to = y + n * width;
        float sum = 0;
        for (long i = 0; i < width; i++) sum += from[i] * from[i];
        float scale = 1.0f / sqrtf(sum / (float)width + epsilon);
        for (long i = 0; i < width; i++) to[i] = from[i] * scale;
        r[n] = scale;
    }
}

/* d_x = r (d_y − y · mean(d_y ⊙ y)), or added to what d_x holds. */
void norm_back(in_t d_y, in_t y, in_t r, out_t d_x, long rows, long width, int add) {
    for (long n = 0; n < rows; n++) {
        in_t due = d_y + n * width, unit = y + n * width;
        out_t to = d_x + n * width;
        float along = 0;
        for (long i = 0; i < width; i++) along += due[i] * unit[i];
        along /= (float)width;
        if (add)
            for (long i = 0; i < width; i++) to[i] += r[n] * (due[i] - unit[i] * along);
        else
            for (long i = 0; i < width; i++) to[i] = r[n] * (due[i] - unit[i] * along);
    }
}

/* ---- gate: out = silu(a) ⊙ b, where a and b are the halves of each row of h; back turns h into its gradient ---- */

void gate(in_t h, out_t out, long rows, long width) {
    for (long n = 0; n < rows; n++) {
        in_t a = h + 2 * n * width, b = a + width;
        out_t to = out + n * width;
        for (long i = 0; i < width; i++) to[i] = a[i] / (1.0f + exp2_of(-LOG2E * a[i])) * b[i];
    }
}

void gate_back(in_t d_out, out_t h, long rows, long width) {
    for (long n = 0; n < rows; n++) {
        in_t due = d_out + n * width;
        float *a = h + 2 * n * width;
        out_t b = a + width;
#pragma GCC ivdep
        for (long i = 0; i < width; i++) {
            float s = 1.0f / (1.0f + exp2_of(-LOG2E * a[i])), silu = a[i] * s, d = due[i];
            a[i] = d * b[i] * (s + silu * (1.0f - s));
            b[i] = d * silu;
        }
    }
}

/* ---- squared: out = max(h, 0)²; back turns h into its gradient ---- */

void squared(in_t h, out_t out, long count) {
    for (long i = 0; i < count; i++) {
        float x = h[i] < 0 ? 0 : h[i];
        out[i] = x * x;
    }
}

void squared_back(in_t d_out, out_t h, long count) {
    for (long i = 0; i < count; i++) h[i] = 2 * d_out[i] * (h[i] < 0 ? 0 : h[i]);
}

/* ---- softmax cross-entropy: the sum of nats; logits become softmax − one at the target ---- */

double cross_entropy(out_t logits, const int64_t *restrict targets, long rows, long width) {
    double nats = 0;
    for (long n = 0; n < rows; n++) {
        out_t x = logits + n * width;
        float most = most_of(x, width), sum = 0;
        float wanted = x[targets[n]];
        for (long i = 0; i < width; i++) {
            float power = exp2_of(LOG2E * (x[i] - most));
            x[i] = power;
            sum += power;
        }
        nats += log((double)sum) + (double)(most - wanted);
        float scale = 1.0f / sum;
        for (long i = 0; i < width; i++) x[i] *= scale;
        x[targets[n]] -= 1.0f;
    }
    return nats;
}

/* ---- dropping: a number stays, 1/(1−p) times as large, where a hash of its place reaches p · 2³² ---- */

static inline uint32_t mixed(uint32_t h) {
    h ^= h >> 16;
    h *= 0x85EBCA6Bu;
    h ^= h >> 13;
    h *= 0xC2B2AE35u;
    return h ^ h >> 16;
}

void drop(in_t x, out_t out, const int32_t *restrict places, long rows, long width, uint32_t key, uint32_t below,
          float scale, int add) {
    for (long n = 0; n < rows; n++) {
        in_t from = x + n * width;
        out_t to = out + n * width;
        uint32_t first = (uint32_t)places[n];
        for (long i = 0; i < width; i++) {
            float kept = mixed((first + (uint32_t)i) * 0x9E3779B1u + key) < below ? 0.0f : from[i] * scale;
            to[i] = add ? to[i] + kept : kept;
        }
    }
}

/* ---- rows of a table ---- */

void pick_rows(in_t table, const int64_t *restrict rows, out_t out, long count, long width, int add) {
    for (long n = 0; n < count; n++) {
        in_t from = table + rows[n] * width;
        out_t to = out + n * width;
        if (add)
            for (long i = 0; i < width; i++) to[i] += from[i];
        else
            memcpy(to, from, (size_t)width * sizeof(float));
    }
}

void add_rows(in_t x, const int64_t *restrict rows, out_t table, long count, long width) {
    for (long n = 0; n < count; n++) {
        in_t from = x + n * width;
        out_t to = table + rows[n] * width;
        for (long i = 0; i < width; i++) to[i] += from[i];
    }
}

/* ---- attention ----

A row of qkv holds H heads of q, K of k and K of v, d numbers each; H/K heads share a k and a v. With z = g ⊙ norm(x)
(or x, where there are no gains), q and k are turned: out_i = z_i cos − z_{i+d/2} sin, out_{i+d/2} = z_{i+d/2} cos + z_i sin.

    s_ij = q_i · k_j / √d  (j ≤ i)      p = softmax(s)      o = p v
    d_v = pᵀ d_o     d_p = d_o vᵀ     d_s = p ⊙ (d_p − Σ_c d_o ⊙ o)     d_q = d_s k / √d     d_k = d_sᵀ q / √d

Heads go one at a time through scratch memory that stays in the cache, BLOCK queries at a time against the keys up to the
last of them. Scores are kept as powers of two: q is packed times log₂e/√d. */

/* C (+)= A B for `rows` a multiple of ROWS and `columns` of W; A may be read with any strides. */
#define TILE(NAME, VECTORS)                                                                                            \
    static void NAME(float *c, long c_row, const float *a, long a_row, long a_step, const float *b, long b_row,       \
                     long depth, int add) {                                                                            \
        vec sums[ROWS][VECTORS];                                                                                       \
        for (int r = 0; r < ROWS; r++)                                                                                 \
            for (int v = 0; v < VECTORS; v++) sums[r][v] = add ? *(const vec *)(c + r * c_row + v * W) : (vec){0};     \
        for (long k = 0; k < depth; k++) {                                                                             \
            vec along[VECTORS];                                                                                        \
            for (int v = 0; v < VECTORS; v++) along[v] = *(const vec *)(b + k * b_row + v * W);                        \
            for (int r = 0; r < ROWS; r++)                                                                             \
                for (int v = 0; v < VECTORS; v++) sums[r][v] += a[r * a_row + k * a_step] * along[v];                  \
        }                                                                                                              \
        for (int r = 0; r < ROWS; r++)                                                                                 \
            for (int v = 0; v < VECTORS; v++) *(vec *)(c + r * c_row + v * W) = sums[r][v];                            \
    }
TILE(tile_one, 1)
TILE(tile_two, 2)

static void product(float *c, long c_row, const float *a, long a_row, long a_step, const float *b, long b_row, long rows,
                    long columns, long depth, int add) {
    for (long j = 0; j < columns;) {
        int two = columns - j >= 2 * W;
        for (long i = 0; i < rows; i += ROWS)
            (two ? tile_two : tile_one)(c + i * c_row + j, c_row, a + i * a_row, a_row, a_step, b + j, b_row, depth, add);
        j += two ? 2 * W : W;
    }
}

typedef struct {
    long texts, times, heads, key_heads, width; /* width: d */
    float epsilon;
    const float *cosine, *sine; /* times × d/2 */
    const float *q_gain, *k_gain; /* d, or none */
} shape_t;

static long padded(long count, long to) { return (count + to - 1) / to * to; }

/* Of each row of a head 1/√(mean x² + ε); all squares first, so that roots are made of vectors. */
static void inverse_lengths(const shape_t *s, const float *x, long row, out_t r) {
    for (long t = 0; t < s->times; t++) {
        in_t from = x + t * row;
        float sum = 0;
        for (long i = 0; i < s->width; i++) sum += from[i] * from[i];
        r[t] = sum;
    }
    for (long t = 0; t < s->times; t++) r[t] = 1.0f / sqrtf(r[t] / (float)s->width + s->epsilon);
}

/* One head of q or k into scratch, normed, turned and scaled, with zeros behind; r is memory for `times` numbers. */
static void pack_turned(const shape_t *s, const float *x, long row, in_t gain, float scale, out_t out, long wide,
                        out_t r) {
    long d = s->width, half = d / 2;
    if (gain) inverse_lengths(s, x, row, r);
    for (long t = 0; t < s->times; t++) {
        in_t from = x + t * row, cosine = s->cosine + t * half, sine = s->sine + t * half;
        out_t to = out + t * wide;
        if (gain) {
            float length = scale * r[t];
            for (long i = 0; i < half; i++) {
                float a = from[i] * length * gain[i], b = from[i + half] * length * gain[i + half];
                to[i] = a * cosine[i] - b * sine[i];
                to[i + half] = b * cosine[i] + a * sine[i];
            }
        } else
            for (long i = 0; i < half; i++) {
                float a = from[i] * scale, b = from[i + half] * scale;
                to[i] = a * cosine[i] - b * sine[i];
                to[i + half] = b * cosine[i] + a * sine[i];
            }
        for (long i = d; i < wide; i++) to[i] = 0;
    }
    memset(out + s->times * wide, 0, (size_t)((padded(s->times, BLOCK) - s->times) * wide) * sizeof(float));
}

static void pack(const shape_t *s, const float *x, long row, out_t out, long wide) {
    for (long t = 0; t < s->times; t++) {
        for (long i = 0; i < s->width; i++) out[t * wide + i] = x[t * row + i];
        for (long i = s->width; i < wide; i++) out[t * wide + i] = 0;
    }
    memset(out + s->times * wide, 0, (size_t)((padded(s->times, BLOCK) - s->times) * wide) * sizeof(float));
}

static void transpose(in_t x, out_t out, long rows, long columns) {
    for (long first = 0; first < rows; first += W)
        for (long c = 0; c < columns; c++)
            for (long r = first; r < first + W; r++) out[c * rows + r] = x[r * columns + c];
}

/* The gradient of pack_turned, times `scale`, written over the head of q or k itself. That of the gain is added up for
   this head alone first, behind r: long sums of small numbers lose digits. */
static void unpack_turned(const shape_t *s, float *x, long row, in_t gain, float scale, in_t due, long wide,
                          out_t d_gain, out_t r) {
    long d = s->width, half = d / 2;
    out_t d_own = r + padded(s->times, BLOCK);
    if (gain) inverse_lengths(s, x, row, r);
    memset(d_own, 0, (size_t)d * sizeof(float));
    for (long t = 0; t < s->times; t++) {
        float *to = x + t * row;
        in_t from = due + t * wide, cosine = s->cosine + t * half, sine = s->sine + t * half;
        if (!gain) {
            for (long i = 0; i < half; i++) {
                float a = from[i] * scale, b = from[i + half] * scale;
                to[i] = a * cosine[i] + b * sine[i];
                to[i + half] = b * cosine[i] - a * sine[i];
            }
            continue;
        }
        float length = r[t], along = 0;
#pragma GCC ivdep
        for (long i = 0; i < half; i++) {
            float a = from[i] * scale, b = from[i + half] * scale, y_a = to[i] * length, y_b = to[i + half] * length;
            float z_a = a * cosine[i] + b * sine[i], z_b = b * cosine[i] - a * sine[i];
            d_own[i] += z_a * y_a;
            d_own[i + half] += z_b * y_b;
            along += z_a * gain[i] * y_a + z_b * gain[i + half] * y_b;
        }
        along /= (float)d;
#pragma GCC ivdep
        for (long i = 0; i < half; i++) {
            float a = from[i] * scale, b = from[i + half] * scale, y_a = to[i] * length, y_b = to[i + half] * length;
            float z_a = a * cosine[i] + b * sine[i], z_b = b * cosine[i] - a * sine[i];
            to[i] = length * (z_a * gain[i] - y_a * along);
            to[i + half] = length * (z_b * gain[i + half] - y_b * along);
        }
    }
    for (long i = 0; gain && i < d; i++) d_gain[i] += d_own[i];
}

/* How many floats of scratch memory `attend` and `attend_back` need. */
long attend_scratch(long times, long width) {
    long all = padded(times, BLOCK), wide = padded(width, W);
    return 9 * all * wide + 2 * BLOCK * all + all + wide;
}

/* o (texts · times × H d), and of every head and row the largest s and 1/Σ 2^(s − largest) (texts × H × times × 2). */
void attend(const float *qkv, float *o, float *sums, float *scratch, long texts, long times, long heads, long key_heads,
            long width, float epsilon, const float *cosine, const float *sine, const float *q_gain,
            const float *k_gain) {
    shape_t s = {texts, times, heads, key_heads, width, epsilon, cosine, sine, q_gain, k_gain};
    long all = padded(times, BLOCK), wide = padded(width, W), row = (heads + 2 * key_heads) * width, group = heads / key_heads;
    float *q = scratch, *k = q + all * wide, *k_t = k + all * wide, *v = k_t + all * wide, *mix = v + all * wide,
          *p = mix + all * wide, *r = p + BLOCK * all;
    float scale = LOG2E / sqrtf((float)width);
    for (long b = 0; b < texts; b++)
        for (long h = 0; h < heads; h++) {
            const float *text = qkv + b * times * row;
            if (h % group == 0) {
                pack_turned(&s, text + (heads + h / group) * width, row, k_gain, 1.0f, k, wide, r);
                transpose(k, k_t, all, wide);
                pack(&s, text + (heads + key_heads + h / group) * width, row, v, wide);
            }
            pack_turned(&s, text + h * width, row, q_gain, scale, q, wide, r);
            for (long first = 0; first < times; first += BLOCK) {
                long keys = first + BLOCK, last = times - first < BLOCK ? times - first : BLOCK;
                product(p, keys, q + first * wide, wide, 1, k_t, all, BLOCK, keys, wide, 0);
                float over[BLOCK];
                for (long i = 0; i < last; i++) {
                    out_t line = p + i * keys;
                    long seen = first + i + 1, full = padded(seen, W);
                    for (long j = seen; j < full; j++) line[j] = -INFINITY;
                    float most = most_of(line, full), sum = 0;
                    vec lanes = {0};
                    for (long j = 0; j < full; j += W) {
                        vec power = exp2_below(*(vec *)(line + j) - most);
                        *(vec *)(line + j) = power;
                        lanes += power;
                    }
                    for (int l = 0; l < W; l++) sum += lanes[l];
                    for (long j = seen; j < keys; j++) line[j] = 0;
                    over[i] = 1.0f / sum;
                    float *kept = sums + 2 * ((b * heads + h) * times + first + i);
                    kept[0] = most, kept[1] = over[i];
                }
                product(mix, wide, p, keys, 1, v, wide, BLOCK, wide, keys, 0);
                for (long i = 0; i < last; i++) {
                    out_t to = o + (b * times + first + i) * heads * width + h * width;
                    for (long c = 0; c < width; c++) to[c] = mix[i * wide + c] * over[i];
                }
            }
        }
}

/* Turns qkv into its gradient, from that of o; gradients of gains are added to d_q_gain and d_k_gain. */
void attend_back(float *qkv, const float *o, const float *d_o, const float *sums, float *scratch, long texts, long times,
                 long heads, long key_heads, long width, float epsilon, const float *cosine, const float *sine,
                 const float *q_gain, const float *k_gain, float *d_q_gain, float *d_k_gain) {
    shape_t s = {texts, times, heads, key_heads, width, epsilon, cosine, sine, q_gain, k_gain};
    long all = padded(times, BLOCK), wide = padded(width, W), row = (heads + 2 * key_heads) * width, group = heads / key_heads;
    long size = all * wide;
    float *q = scratch, *k = q + size, *k_t = k + size, *v = k_t + size, *v_t = v + size, *due = v_t + size,
          *d_q = due + size, *d_k = d_q + size, *d_v = d_k + size, *p = d_v + size, *d_p = p + BLOCK * all, *r = d_p + BLOCK * all;
    float scale = LOG2E / sqrtf((float)width), back = 1.0f / sqrtf((float)width);
    for (long b = 0; b < texts; b++)
        for (long h = 0; h < heads; h++) {
            float *text = qkv + b * times * row;
            float *k_of = text + (heads + h / group) * width, *v_of = k_of + key_heads * width;
            if (h % group == 0) {
                pack_turned(&s, k_of, row, k_gain, 1.0f, k, wide, r);
                transpose(k, k_t, all, wide);
                pack(&s, v_of, row, v, wide);
                transpose(v, v_t, all, wide);
                memset(d_k, 0, (size_t)(2 * size) * sizeof(float)); /* and d_v */
            }
            pack_turned(&s, text + h * width, row, q_gain, scale, q, wide, r);
            pack(&s, d_o + b * times * heads * width + h * width, heads * width, due, wide);
            for (long first = 0; first < times; first += BLOCK) {
                long keys = first + BLOCK, last = times - first < BLOCK ? times - first : BLOCK;
                product(p, keys, q + first * wide, wide, 1, k_t, all, BLOCK, keys, wide, 0);
                product(d_p, keys, due + first * wide, wide, 1, v_t, all, BLOCK, keys, wide, 0);
                for (long i = 0; i < BLOCK; i++) {
                    out_t line = p + i * keys, d_line = d_p + i * keys;
                    long seen = i < last ? first + i + 1 : 0;
                    if (seen) {
                        in_t mine = o + (b * times + first + i) * heads * width + h * width;
                        const float *kept = sums + 2 * ((b * heads + h) * times + first + i);
                        float most = kept[0], over = kept[1], along = 0;
                        for (long c = 0; c < width; c++) along += due[(first + i) * wide + c] * mine[c];
                        for (long j = seen; j < padded(seen, W); j++) line[j] = -INFINITY;
                        for (long j = 0; j < seen; j += W) {
                            vec power = exp2_below(*(vec *)(line + j) - most) * over;
                            *(vec *)(line + j) = power;
                            *(vec *)(d_line + j) = power * (*(vec *)(d_line + j) - along);
                        }
                    }
                    for (long j = seen; j < keys; j++) line[j] = d_line[j] = 0;
                }
                product(d_q + first * wide, wide, d_p, keys, 1, k, wide, BLOCK, wide, keys, 0);
                product(d_k, wide, d_p, 1, keys, q + first * wide, wide, keys, wide, BLOCK, 1);
                product(d_v, wide, p, 1, keys, due + first * wide, wide, keys, wide, BLOCK, 1);
            }
            unpack_turned(&s, text + h * width, row, q_gain, back, d_q, wide, d_q_gain, r);
            if ((h + 1) % group == 0) {
                unpack_turned(&s, k_of, row, k_gain, LN2, d_k, wide, d_k_gain, r); /* q holds log₂e/√d */
                for (long t = 0; t < times; t++)
                    for (long c = 0; c < width; c++) v_of[t * row + c] = d_v[t * wide + c];
            }
        }
}
