# what: passthrough_hp and passthrough_ll, libfuse's own pass-through file systems, for `backstory-bench mounted` and `inspected --mounted`
# They use the installed library (Debian: fuse3). Its package of headers is not needed.
mkdir -p built
echo '#define LIBFUSE_BUILT_WITH_VERSIONED_SYMBOLS 1' >built/libfuse_config.h
flags='-O2 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -Ibuilt -pthread'
cc $flags example/passthrough_ll.c -o passthrough_ll -l:libfuse3.so.3
c++ -std=c++17 $flags example/passthrough_hp.cc -o passthrough_hp -l:libfuse3.so.3
