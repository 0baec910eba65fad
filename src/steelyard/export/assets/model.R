# @@ABOUT@@
# score(data) scores a data frame: a data frame with the column prediction and the
# probability of every class. NA is a missing cell. Base R is all it needs.
score <- local({
model <- @@MODEL@@

# The number or truth value that texts state, NA for other text.
stated <- function(text) {
  text <- trimws(text)
  pattern <- "^[-+]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?$"
  number <- ifelse(tolower(text) == "true", 1, ifelse(tolower(text) == "false", 0, NA))
  at <- grepl(pattern, text)
  number[at] <- as.numeric(text[at])
  number
}

# A part of dates of R, or of text in ISO's form; "day" is in days since 1970-01-01.
# Times are those of the clock, in whatever time zone.
date_part <- function(name, x, part) {
  missing <- is.na(x)
  if (inherits(x, "Date")) {
    days <- floor(as.numeric(x))
    micros <- 0 * days
  } else if (inherits(x, "POSIXt")) {
    x <- as.POSIXlt(x)
    days <- as.numeric(as.Date(ISOdate(x$year + 1900, x$mon + 1, x$mday)))
    micros <- (x$hour * 60 + x$min) * 6e7 + round(x$sec * 1e6)
  } else if (is.character(x) || is.factor(x) || all(missing)) {
    x <- as.character(x)
    pattern <- paste0(
      "^ *([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([01][0-9]|2[0-3]):([0-5][0-9])",
      "(?::([0-5][0-9](?:\\.[0-9]+)?))?)?(?:Z|[-+][01][0-9](?::?[0-5][0-9])?)? *$")
    of <- function(k) ifelse(missing, NA, sub(pattern, paste0("\\", k), x, perl = TRUE))
    clock <- function(k) ifelse(of(k) == "", 0, as.numeric(of(k)))
    is_date <- grepl(pattern, x, perl = TRUE)
    days <- as.numeric(as.Date(ifelse(is_date, of(1), NA), "%Y-%m-%d"))
    wrong <- !missing & (!is_date | is.na(days) | of(1) < "0001")
    if (any(wrong)) {
      stop("Column ", encodeString(name, quote = '"'), " takes dates such as ",
        "2024-01-31T14:30; row ", which(wrong)[1], " has ",
        encodeString(x[wrong][1], quote = '"'), ".", call. = FALSE)
    }
    micros <- (clock(2) * 60 + clock(3)) * 6e7 + trunc(clock(4) * 1e6 + 1e-3)
  } else {
    stop("Column ", encodeString(name, quote = '"'), " takes dates, as Date, POSIXct ",
      "or text, got ", class(x)[1], ".", call. = FALSE)
  }
  days <- days + micros %/% 864e8
  micros <- micros %% 864e8
  date <- as.POSIXlt(as.Date(days, origin = "1970-01-01"))
  switch(part,
    day = (days * 864e8 + micros) / 864e8, year = date$year + 1900,
    month = date$mon + 1, weekday = (days + 3) %% 7 + 1, hour = micros %/% 36e8)
}

# The cells of a column as the model compares them, NA if they are missing or unseen.
read <- function(column, data) {
  name <- if (is.null(column$date)) column$name else column$date
  if (!name %in% names(data)) {
    stop("The data frame has no column ", encodeString(name, quote = '"'),
      ". Add it, with NA where it is unknown.", call. = FALSE)
  }
  x <- data[[match(name, names(data))]]
  if (!is.null(column$date)) x <- date_part(name, x, column$part)
  if (is.factor(x)) x <- as.character(x)
  if (is.character(x)) x <- enc2utf8(x)
  missing <- is.na(x)
  refuse <- function(at, wanted = column$cells) {
    if (any(at)) stop("Column ", encodeString(name, quote = '"'), " takes ",
      wanted, "; row ", which(at)[1], " has ", encodeString(format(x[at][1]),
      quote = '"'), " (", class(x)[1], ").", call. = FALSE)
  }
  if (!is.character(x) && !is.logical(x) && !(is.numeric(x) && !is.object(x))) {
    refuse(rep(TRUE, length(x)))
  }
  if (column$cells == "text" && !is.character(x)) {
    if (is.null(column$texts)) refuse(!missing)
    x <- column$texts[match(as.numeric(x), column$numbers)]
  } else if (column$cells != "text" && is.character(x)) {
    number <- if (column$kind == "category") stated(x) else rep(NA_real_, length(x))
    if (column$cells != "nothing") refuse(!missing & is.na(number))
    x <- number
  } else if (column$cells != "text") {
    refuse(is.infinite(x), "finite numbers")
    x <- as.numeric(x)
  }
  list(x = x, missing = missing)
}

# 1 for a value never seen, 2 for a missing cell, then values or intervals in order.
# Intervals are closed on the right.
codes <- function(table, kind, cell) {
  k <- if (kind == "category") match(cell$x, table$values)
    else findInterval(cell$x, as.numeric(table$edges), left.open = TRUE) + 1
  ifelse(cell$missing, 2, ifelse(is.na(k), 1, k + 2))
}

densities <- function(term, cell) {
  x <- cell$x
  if (!is.null(term$fill)) x[cell$missing] <- term$fill
  if (term$form == "interval") x <- round(x / term$step) * term$step
  logs <- vapply(seq_along(term$mean), function(k) {
    away <- x - term$mean[k]
    scale <- term$scale[k]
    if (term$form == "linear") return(pmin(pmax(away * scale, -term$limit), term$limit))
    if (term$form == "interval") {
      ends <- function(end) pnorm((abs(away) + end) * scale, lower.tail = FALSE)
      return(log(pmax(ends(-term$step / 2) - ends(term$step / 2), 1e-75)))
    }
    term$constant[k] - pmin(abs(away) * scale, 1e100)^2 / 2
  }, x)
  logs <- matrix(logs, length(x))
  if (term$form == "relative") logs <- pmax(logs - largest(logs), -term$depth)
  logs <- logs * rep(term$weight, each = length(x))
  logs[is.na(x), ] <- 0
  logs
}

# What a term adds to the classes, a row for each row.
amounts <- function(term, cells) {
  if (term$kind == "density") return(densities(term, cells[[term$column]]))
  if (term$kind == "table") {
    at <- codes(term, model$columns[[term$column]]$kind, cells[[term$column]])
  } else {
    of <- lapply(term$sides, function(side) {
      k <- codes(side, model$columns[[side$column]]$kind, cells[[side$column]])
      side$groups[k]
    })
    at <- of[[1]] * term$n + of[[2]] + 1
  }
  term$rows[at, , drop = FALSE]
}

largest <- function(scores) {
  do.call(pmax, lapply(seq_len(ncol(scores)), function(k) scores[, k]))
}

softmax <- function(scores) {
  powers <- exp(scores - largest(scores))
  powers / rowSums(powers)
}

first_best <- function(scores, order) {
  best <- rep(order[1], nrow(scores))
  rows <- seq_len(nrow(scores))
  for (k in order[-1]) {
    best[scores[, k] > scores[cbind(rows, best)]] <- k
  }
  best
}

filled <- function(row, n) matrix(rep(row, each = n), n, length(row))

scores_of <- function(node, cells) {
  scores <- filled(node$base, length(cells[[1]]$x))
  for (term in node$terms) scores <- scores + amounts(term, cells)
  scores
}

# Probabilities, and the position of the best class; of missing cells by an average.
answer <- function(node, cells) {
  n <- length(cells[[1]]$x)
  if (node$kind == "sum") {
    scores <- scores_of(node, cells)
    p <- softmax(scores * node$scale)
    best <- first_best(scores, node$order)
    if (!is.null(node$marginal)) {
      missing <- missing_cells(node$marginal, cells)
      averaged <- !is.na(node$marginal$odds) & node$marginal$odds == 0
      partial <- rowSums(missing[, averaged, drop = FALSE]) > 0
      patterns <- do.call(paste0, as.data.frame(missing + 0))
      for (at in split(which(partial), patterns[partial])) {
        part <- lapply(cells, function(cell) lapply(cell, `[`, at))
        p[at, ] <- averages(node, part, missing[at[1], ])
        best[at] <- first_best(p[at, , drop = FALSE], node$order)
      }
    }
    return(list(p = p, best = best))
  }
  parts <- lapply(node$parts, answer, cells)
  p <- matrix(0, n, node$n)
  if (node$kind == "vote" && node$form == "elkan") {
    total <- 0
    for (k in seq_along(parts)) {
      total <- total + node$votes[k] * (2 * parts[[k]]$p[, 2] - 1)
    }
    second <- 1 / (1 + exp(pmin(pmax(-total, -700), 700)))
    p <- cbind(1 - second, second)
  } else for (k in seq_along(parts)) {
    part <- parts[[k]]
    if (node$kind == "mixture") p <- p + node$shares[k] * part$p
    if (node$kind == "pairs") p[, node$pairs[[k]]] <- p[, node$pairs[[k]]] + part$p
    if (node$kind == "vote") {
      at <- cbind(seq_len(n), part$best)
      p[at] <- p[at] + node$votes[k]
    }
  }
  if (node$kind == "pairs") p <- p / length(parts)
  if (node$kind == "vote" && node$form != "elkan") p <- softmax(p)
  list(p = p, best = first_best(p, node$order))
}

# Which cells are missing, or categories never seen, a column for each column.
missing_cells <- function(moments, cells) {
  seen <- lapply(moments$plain$terms, function(term) {
    codes(term, model$columns[[term$column]]$kind, cells[[term$column]]) > 1
  })
  names(seen) <- vapply(moments$plain$terms, function(term) paste(term$column), "")
  do.call(cbind, lapply(seq_along(cells), function(j) {
    known <- seen[[paste(j)]]
    unseen <- if (is.null(known)) is.na(cells[[j]]$x) & !cells[[j]]$missing else !known
    ifelse(cells[[j]]$missing, moments$by_missing[j], unseen)
  }))
}

# What matters of numbers by class: the difference of two, or those from their mean.
contrast <- function(x) {
  if (ncol(x) == 2) x[, 2, drop = FALSE] - x[, 1] else x - rowMeans(x)
}

# Probabilities of rows in which the same cells are missing: an average over what these
# may be, given the others, by a factor model of what all attributes add.
averages <- function(node, cells, missing) {
  m <- node$marginal
  n <- length(cells[[1]]$x)
  open <- missing & !is.na(m$odds) & m$odds < mean(missing[which(m$odds == 0)])
  used <- !is.na(m$odds)
  observed <- used & !open
  open <- c(open, vapply(m$sides, function(side) any(open[side]), NA))
  k <- ncol(m$noise)
  rank <- ncol(m$loadings[[1]])
  information <- diag(rank)
  for (j in which(!open)) {
    information <- information + crossprod(m$loadings[[j]] / sqrt(m$noise[j, ]))
  }
  total <- Reduce(`+`, m$loadings[open], matrix(0, k, rank))
  solved <- solve(information, t(total))
  variance <- total %*% solved + diag(colSums(m$noise[open, , drop = FALSE]), k)
  by_attribute <- rep(list(matrix(0, n, length(node$base))), model$attributes)
  for (term in node$terms) {
    j <- term$attribute
    by_attribute[[j]] <- by_attribute[[j]] + amounts(term, cells)
  }
  left <- sum(diag(variance)) / m$variance
  mean <- filled(m$start + left * m$shift, n)
  for (j in which(!open)) {
    added <- contrast(by_attribute[[j]]) - filled(m$means[j, ], n)
    mean <- mean + added %*% ((m$loadings[[j]] / m$noise[j, ]) %*% solved + diag(k))
  }
  mean <- mean * node$scale
  axes <- eigen(variance, symmetric = TRUE)
  root <- axes$vectors %*% (sqrt(pmax(axes$values, 0)) * t(axes$vectors)) * node$scale
  p <- matrix(0, n, length(node$base))
  for (i in seq_len(nrow(m$points))) {
    at <- m$points[i, 1]
    if (k == 1) {
      second <- plogis(mean[, 1] + root[1, 1] * at)
      p <- p + m$points[i, 2] * cbind(1 - second, second)
    } else for (axis in seq_len(k)) for (signed in c(at, -at)) {
      p <- p + m$points[i, 2] * softmax(mean + filled(signed * root[axis, ], n))
    }
  }
  gaps <- sum(used & !observed) / max(sum(used) - 1, 1)
  share <- if (sum(observed) == 1) 1 else min((gaps * left)^(1 / 3), 1)
  plain <- which(observed & m$in_plain)
  share <- share * length(plain) / max(sum(observed), 1)
  loadings <- m$plain_loadings[plain, , drop = FALSE]
  noise <- sum(m$plain_noise[plain])
  power <- min((sum(loadings^2) + noise) / max(sum(colSums(loadings)^2) + noise, 1e-300), 1)
  never <- m$plain$base == -Inf
  rates <- filled(ifelse(never, 0, m$plain$base), n)
  alone <- power * (scores_of(m$plain, cells) - rates) + rates
  alone[, never] <- -Inf
  p <- ((1 - share) * sqrt(p) + share * sqrt(softmax(alone)))^2 * filled(m$ratio, n)
  p / rowSums(p)
}

function(data) {
  if (!is.data.frame(data)) stop("score() takes a data frame.", call. = FALSE)
  found <- answer(model$root, lapply(model$columns, read, data))
  colnames(found$p) <- model$labels
  data.frame(prediction = model$classes[found$best], found$p,
    check.names = FALSE, row.names = row.names(data))
}
})
