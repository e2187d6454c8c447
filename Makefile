# The whole menu. Each target sets up what it needs (see scripts/setup): packages if it may install
# them, Rust if it is missing or too old.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
PYTHON ?= python3
RELEASE = target/release/backstory
WORKER = backstory-inspect
# Where rustup puts Rust: before a distribution's, which is often too old.
export PATH := $(HOME)/.cargo/bin:$(PATH)
# Continuous integration compiles once, in a fresh clone. The incremental data of rustc would not be
# used again, and takes more space than the compiled programs.
ifdef CI
export CARGO_INCREMENTAL := 0
endif

.PHONY: dist help demo test test-all lint fmt docs bench check install uninstall setup setup-test setup-all build programs

help:
	@echo 'make demo      build, record a small pipeline, print where its result comes from'
	@echo 'make check     format, lints and tests of what a change can reach'
	@echo 'make test      format, lints, all tests (what CI runs)'
	@echo 'make test-all  the long tests, too'
	@echo 'make lint      format and lints alone'
	@echo 'make fmt       format in place'
	@echo 'make docs      the documentation site, into target/site'
	@echo 'make bench     timings against native (BENCH="--suite … --rounds …")'
	@echo 'make dist      what users install, into target/dist (or: scripts/dist tarball|deb|crates|wheel|bytes)'
	@echo 'make install   program, man pages and completions into PREFIX=$(PREFIX)'

setup:
	@scripts/setup build

setup-test:
	@scripts/setup test

setup-all:
	@scripts/setup all

# The program, and its worker, which reads file formats. Both are selected for both targets,
# although `build` makes only the program.
# Cargo compiles the crates that they share with the features of all selected packages. So `make
# install` after `make demo` compiles no crate twice.
SELECTED = --release --locked -p backstory -p $(WORKER)

build: setup
	scripts/with-page $(CARGO) build $(SELECTED) --bin backstory

programs: setup
	scripts/with-page $(CARGO) build $(SELECTED)

demo: build
	@examples/demo $(RELEASE)

test:
	scripts/test

test-all: setup-all test
	scripts/test-long

check: setup
	@scripts/check

lint: setup-test
	scripts/lint-sources
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --workspace --features backstory/lsm,backstory/redb --all-targets --locked -- -D warnings
	scripts/lint-features
	engines=$$(scripts/library-engines); [ -z "$$engines" ] || $(CARGO) clippy -p backstory-c-engines \
		-p backstory-store --features "$$engines" --all-targets --locked -- -D warnings

fmt:
	$(CARGO) fmt --all
	scripts/lint-c --fix
	scripts/lint-python --fix

docs: setup-test
	$(CARGO) build --locked -p backstory
	scripts/docs target/debug/backstory

bench: build
	BACKSTORY=$(CURDIR)/$(RELEASE) PYTHONPATH=bench $(PYTHON) -m backstory_bench.cli run $(BENCH)

dist:
	@scripts/setup dist
	scripts/dist

# The symbols of the installed program. Debuggers look there if PREFIX is /usr. For another PREFIX:
# set debug-file-directory PREFIX/lib/debug
SYMBOLS = $(DESTDIR)$(PREFIX)/lib/debug$(PREFIX)/bin/backstory.debug

# The program is installed without symbols. They are a file of their own, which the program names.
# Under sudo the user's own build is installed. Root may have no Rust, and its build would leave
# files that only root can change. The installed files are readable by all, whatever the umask.
install:
	@test -n "$$SUDO_USER" -a -x $(RELEASE) || $(MAKE) --no-print-directory programs
	umask 022 && mkdir -p $(dir $(SYMBOLS)) $(DESTDIR)$(PREFIX)/bin
	umask 022 && objcopy --only-keep-debug $(RELEASE) $(SYMBOLS) && chmod 644 $(SYMBOLS)
	umask 022 && cd $(dir $(SYMBOLS)) && \
		objcopy --strip-all --add-gnu-debuglink=backstory.debug $(abspath $(RELEASE)) $(abspath $(DESTDIR)$(PREFIX)/bin/backstory)
	chmod 755 $(DESTDIR)$(PREFIX)/bin/backstory
	@# The worker is a program of its own: `backstory` works without it, too.
	umask 022 && mkdir -p $(DESTDIR)$(PREFIX)/libexec/backstory && \
		if test -x $(dir $(RELEASE))$(WORKER); then objcopy --strip-all $(dir $(RELEASE))$(WORKER) \
			$(DESTDIR)$(PREFIX)/libexec/backstory/$(WORKER); fi
	@# What programs use to say what they do.
	umask 022 && scripts/libbackstory $(DESTDIR)$(PREFIX)
	umask 022 && $(RELEASE) man $(DESTDIR)$(PREFIX)/share/man/man1
	umask 022 && cd $(DESTDIR)$(PREFIX)/share && \
		mkdir -p bash-completion/completions zsh/site-functions fish/vendor_completions.d && \
		../bin/backstory completions bash > bash-completion/completions/backstory && \
		../bin/backstory completions zsh > zsh/site-functions/_backstory && \
		../bin/backstory completions fish > fish/vendor_completions.d/backstory.fish

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/libexec/backstory/$(WORKER)
	rm -f $(DESTDIR)$(PREFIX)/include/backstory.h $(addprefix $(DESTDIR)$(PREFIX)/lib/,libbackstory.a \
		libbackstory.so libbackstory.so.0 backstory/backstory_sqlite.so)
	rm -f $(DESTDIR)$(PREFIX)/bin/backstory $(SYMBOLS) $(DESTDIR)$(PREFIX)/share/man/man1/backstory.1 \
		$(DESTDIR)$(PREFIX)/share/man/man1/backstory-*.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/backstory \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_backstory \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/backstory.fish
