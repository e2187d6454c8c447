# Records calls of functions in R, for `backstory record --functions`.
#
# The recorder has each R of the run read this file as the user's profile (R_PROFILE_USER). It reads
# the profile that R would have read. After each expression at the top level, the functions whose names
# match get a statement where they begin, and one where they end. These look up paths at which
# nothing can be: marks, which the recorder takes.
#
# Invariant: a function keeps its frame, its formals and its value, so that a program sees no call
# in between.
local({
  # The profile without backstory.
  own <- Sys.getenv("BACKSTORY_R_PROFILE_USER", unset = NA)
  if (basename(own) %in% "backstory-functions.R") own <- NA
  Sys.unsetenv(c("BACKSTORY_R_PROFILE_USER", "R_PROFILE_USER"))
  if (!is.na(own)) Sys.setenv(R_PROFILE_USER = own)
  if (is.na(own)) own <- if (file.exists(".Rprofile")) ".Rprofile" else path.expand("~/.Rprofile")
  # An empty variable means that no profile is read.
  if (nzchar(own) && file.exists(own)) {
    for (expression in parse(own, keep.source = FALSE)) {
      value <- withVisible(eval(expression, globalenv()))
      if (value$visible) print(value$value)
    }
  }

  install <- function() {
    patterns <- strsplit(Sys.getenv("BACKSTORY_FUNCTIONS"), "\n", fixed = TRUE)[[1]]
    if (length(patterns) == 0) return()

    # A pattern of names as an expression. `*` matches anything, `?` one character.
    expression_of <- function(glob) {
      text <- gsub("([.+^${}()|\\[\\]\\\\])", "\\\\\\1", glob, perl = TRUE)
      paste0("^", gsub("?", ".", gsub("*", ".*", text, fixed = TRUE), fixed = TRUE), "$")
    }
    # The file and the name of a pattern. A colon between them is no part of `::`.
    at <- regexpr("(?<!:):(?!:)", patterns, perl = TRUE)
    files <- ifelse(at > 0, substr(patterns, 1, at - 1), NA)
    names <- vapply(ifelse(at > 0, substr(patterns, at + 1, nchar(patterns)), patterns), expression_of, "")

    # The names that match for a file or package with these names.
    matching <- function(found, modules) {
      is_of <- vapply(files, function(file) {
        is.na(file) || any(grepl(expression_of(file), modules))
      }, NA)
      wanted <- vapply(found, function(name) any(vapply(names[is_of], grepl, NA, x = name)), NA)
      found[wanted]
    }

    mark <- function(...) paste0("/dev/null/backstory/", ...)
    # A number for a function: a hash of its place and name, with the highest bit of 32.
    numbered <- function(where, name) {
      hash <- 7
      for (code in utf8ToInt(enc2utf8(paste(where, name)))) hash <- (hash * 31 + code) %% 2147483648
      number <- sprintf("%.0f", hash + 2147483648)
      file.exists(mark("function/", number, "/", where, "/", name))
      number
    }

    is_call_mark <- function(part) {
      is.call(part) && length(part) == 2 && is.character(part[[2]]) &&
        startsWith(part[[2]][1], mark("call/"))
    }
    # The body that a function had before its statements. Another name, or other formals, make a new
    # function of one that has them.
    bare <- function(code) {
      if (!is.call(code) || !identical(code[[1]], as.name("{"))) return(code)
      if (length(code) == 3 && is_call_mark(code[[2]])) return(code[[3]][[2]])
      if (length(code) == 4 && is_call_mark(code[[3]])) return(code[[4]])
      code
    }

    # The function with its statements. NULL: it cannot have them.
    hooked <- function(f, where, name) {
      code <- bare(body(f))
      used <- all.names(code)
      keeps <- "on.exit" %in% used
      dispatches <- any(c("UseMethod", "standardGeneric") %in% used)
      if (keeps && dispatches || !nzchar(name)) return(NULL)
      number <- numbered(where, name)
      look_up <- function(word) as.call(list(base::file.exists, mark(word, "/", number)))
      call <- look_up("call")
      left <- look_up("return")
      kept <- attributes(f)
      block <- as.name("{")
      # A later `on.exit` of the function would take ours away.
      body(f) <- if (keeps) {
        as.call(list(block, call, as.call(list(base::tryCatch, code, finally = left))))
      } else {
        as.call(list(block, as.call(list(base::on.exit, left, add = TRUE)), call, code))
      }
      attributes(f) <- kept
      f
    }

    done <- new.env()
    # Hooks the functions of an environment whose names match.
    hook_all <- function(where, env, modules) {
      for (name in matching(ls(env, all.names = TRUE), modules)) {
        locked <- bindingIsLocked(name, env)
        if (bindingIsActive(name, env) || locked && !isNamespace(env)) next
        f <- get(name, envir = env)
        if (typeof(f) != "closure") next
        key <- paste(where, name)
        if (identical(f, done[[key]])) next
        new <- hooked(f, where, name)
        if (is.null(new)) {
          new <- f
        } else {
          if (locked) unlockBinding(name, env)
          assign(name, new, envir = env)
          if (locked) lockBinding(name, env)
        }
        assign(key, new, envir = done)
      }
    }

    script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
    script <- if (length(script)) basename(script[1]) else "R"
    modules <- c(script, sub("[.][^.]*$", "", script))
    hook_script <- function(...) {
      tryCatch(hook_all(script, globalenv(), modules), error = function(e) NULL)
      TRUE
    }
    addTaskCallback(hook_script, name = "backstory")

    # Packages are hooked when they are loaded, before their functions are attached.
    hook_package <- function(package, ...) {
      tryCatch(hook_all(package, asNamespace(package), package), error = function(e) NULL)
    }
    for (package in unique(files[!is.na(files) & !grepl("[*?]", files)])) {
      setHook(packageEvent(package, "onLoad"), hook_package)
    }
  }
  # The program comes first.
  tryCatch(install(), error = function(e) NULL)
})
