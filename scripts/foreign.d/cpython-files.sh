# what: CPython's own tests: test_os test_io test_posix test_shutil test_mmap test_tempfile test_pathlib test_glob test_stat
# needs: /usr/lib/python3.11/test/test_os.py
# compare: tests
# limit: 280
timeout $((270 * FOREIGN_PATIENCE)) /usr/bin/python3.11 -m test -v -u none --timeout $((240 * FOREIGN_PATIENCE)) test_os test_io test_posix test_shutil test_mmap test_tempfile test_pathlib test_glob test_stat
