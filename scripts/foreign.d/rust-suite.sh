# what: cargo test of ripgrep: compiles it, and its tests run it
# needs: cargo
# source: ripgrep/.made
# compare: tests
# limit: 290
# Its dependencies are compiled already, into a directory beside the project.
cp -a "$FOREIGN_SOURCES"/ripgrep/project . && cd project || exit
export CARGO_HOME=$FOREIGN_SOURCES/ripgrep/home RUSTUP_HOME=${RUSTUP_HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)/.rustup} CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
cargo test --locked --offline 2>"$HOME/cargo.log"
[ $? = 0 ] && echo "RESULT cargo: ok" || echo "RESULT cargo: failed"
