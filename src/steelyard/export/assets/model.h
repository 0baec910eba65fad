/* @@ABOUT@@
   It is C99, and needs the standard library alone (-lm). model_score(&row, &answer)
   scores a row: it returns NULL, or a text that says what is wrong. NAN and NULL are
   missing cells; text is UTF-8. Not for -ffast-math, which knows no NAN. */
#ifndef STEELYARD_MODEL_H
#define STEELYARD_MODEL_H

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef struct {
@@MEMBERS@@
} model_row;

typedef struct {
  int prediction; /* position in model_classes */
@@ANSWERS@@
} model_answer;

static const char *const model_classes[] = @@LABELS@@;

typedef struct {
@@CELLS@@
} model_cells;

/* The code of a category: 0 if it is missing, 1 if it was never seen, then values. */
static inline int model_text(const char *cell, const char *const *values, int n) {
  int low = 0, high = n;
  if (cell == NULL) return 0;
  while (low < high) {
    int middle = (low + high) / 2, order = strcmp(values[middle], cell);
    if (order == 0) return middle + 2;
    if (order < 0) low = middle + 1; else high = middle;
  }
  return 1;
}

/* The number of edges below a number, and 1; 0 if it is missing. */
static inline int model_interval(double cell, const double *edges, int n) {
  int low = 0, high = n;
  if (isnan(cell)) return 0;
  while (low < high) {
    int middle = (low + high) / 2;
    if (edges[middle] < cell) low = middle + 1; else high = middle;
  }
  return low + 1;
}

static inline int model_value(double cell, const double *values, int n) {
  int k = model_interval(cell, values, n);
  if (k == 0) return 0;
  return k <= n && values[k - 1] == cell ? k + 1 : 1;
}

static inline void model_add(double *s, const double *row, int n) {
  for (int c = 0; c < n; c++) s[c] += row[c];
}

/* Mean, scale, constant and weight are rows; the form is the first letter of plain,
   relative, linear or interval. */
static inline void model_density(
    double *s, double x, const double *rows, int n, char form, double limit) {
  double logs[@@N@@], top = -INFINITY;
  if (isnan(x)) return;
  if (form == 'i') x = nearbyint(x / limit) * limit;
  for (int c = 0; c < n; c++) {
    double away = x - rows[c], scale = rows[n + c], far = fabs(away) * scale;
    double half = limit * scale / 2, root = sqrt(.5);
    if (form == 'l') {
      logs[c] = fmin(fmax(away * scale, -limit), limit);
    } else if (form == 'i') {
      double share = erfc((far - half) * root) - erfc((far + half) * root);
      logs[c] = log(fmax(share / 2, 1e-75));
    } else {
      far = fmin(far, 1e100);
      logs[c] = rows[2 * n + c] - far * far / 2;
    }
    top = fmax(top, logs[c]);
  }
  for (int c = 0; c < n; c++) {
    if (form == 'r') logs[c] = fmax(logs[c] - top, -limit);
    s[c] += rows[3 * n + c] * logs[c];
  }
}

static inline void model_softmax(double *p, const double *s, int n, double scale) {
  double top = s[0], total = 0;
  for (int c = 1; c < n; c++) top = fmax(top, s[c]);
  for (int c = 0; c < n; c++) total += p[c] = exp((s[c] - top) * scale);
  for (int c = 0; c < n; c++) p[c] /= total;
}

/* Of the best, the first in an order. */
static inline int model_best(const double *s, const int *order, int n) {
  int best = order[0];
  for (int c = 1; c < n; c++) if (s[order[c]] > s[best]) best = order[c];
  return best;
}

/* A number of n digits, -1 if there are others. */
static inline int model_digits(const char **at, int n) {
  int number = 0;
  for (; n > 0; n--, ++*at) {
    if (**at < '0' || **at > '9') return -1;
    number = 10 * number + **at - '0';
  }
  return number;
}

/* Days since 1970-01-01, year, month, weekday and hour of text such as
   2024-01-31T14:30:05.25; by the clock: a time zone is left out. 1 for other text. */
static inline int model_date(const char *at, double *parts) {
  static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int year, month, day, hour = 0, minute = 0, second = 0, leap, shifted;
  double micros = 0, unit = 1e5, days;
  for (int k = 0; k < 5; k++) parts[k] = NAN;
  if (at == NULL) return 0;
  while (*at == ' ') at++;
  if ((year = model_digits(&at, 4)) < 1 || *at++ != '-') return 1;
  if ((month = model_digits(&at, 2)) < 1 || month > 12 || *at++ != '-') return 1;
  leap = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  day = model_digits(&at, 2);
  if (day < 1 || day > lengths[month - 1] + leap) return 1;
  if (*at == 'T' || (*at == ' ' && at[1] >= '0' && at[1] <= '9')) {
    at++;
    if ((hour = model_digits(&at, 2)) < 0 || hour > 23 || *at++ != ':') return 1;
    if ((minute = model_digits(&at, 2)) < 0 || minute > 59) return 1;
    if (*at == ':') {
      at++;
      if ((second = model_digits(&at, 2)) < 0 || second > 59) return 1;
      if (*at == '.' && !(at[1] >= '0' && at[1] <= '9')) return 1;
      if (*at == '.') {
        for (at++; *at >= '0' && *at <= '9'; at++, unit = floor(unit / 10)) {
          micros += unit * (*at - '0');
        }
      }
    }
  }
  if (*at == 'Z') {
    at++;
  } else if (*at == '+' || *at == '-') {
    int zone;
    at++;
    if ((zone = model_digits(&at, 2)) < 0 || zone > 19) return 1;
    if (*at == ':' || (*at >= '0' && *at <= '9')) {
      at += *at == ':';
      if ((zone = model_digits(&at, 2)) < 0 || zone > 59) return 1;
    }
  }
  while (*at == ' ') at++;
  if (*at != '\0') return 1;
  /* Years that begin in March end with the day that only some have. */
  shifted = year - (month < 3);
  days = 365. * shifted + shifted / 4 - shifted / 100 + shifted / 400
    + (153 * (month + (month < 3 ? 9 : -3)) + 2) / 5 + day - 719469;
  micros += (hour * 3600. + minute * 60 + second) * 1e6;
  parts[0] = (days * 864e8 + micros) / 864e8;
  parts[1] = year;
  parts[2] = month;
  parts[3] = fmod(fmod(days + 3, 7) + 7, 7) + 1;
  parts[4] = hour;
  return 0;
}

@@MODEL@@

static inline const char *model_score(const model_row *row, model_answer *answer) {
  model_cells of;
  (void)row;
@@READ@@
  answer->prediction = @@ROOT@@(&of, answer->probability);
@@LAST@@
  return NULL;
}

#endif
