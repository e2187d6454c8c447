# what: CPython's own tests: test_fcntl test_eintr test_resource test_sqlite3 test_zipfile test_tarfile test_gzip test_ctypes test_faulthandler
# needs: /usr/lib/python3.11/test/test_os.py
# compare: tests
# limit: 280
timeout $((270 * FOREIGN_PATIENCE)) /usr/bin/python3.11 -m test -v -u none --timeout $((240 * FOREIGN_PATIENCE)) test_fcntl test_eintr test_resource test_sqlite3 test_zipfile test_tarfile test_gzip test_ctypes test_faulthandler
