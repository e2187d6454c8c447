# what: Go's own tests of os, os/exec, os/signal and syscall
# needs: go gcc
# compare: tests
# limit: 290
root=$(go env GOROOT)
[ -f "$root/src/os/os_test.go" ] || { echo "needs Go's sources" >&2; exit 77; }
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOCACHE=${TMPDIR:-/tmp}/foreign-go-cache-$(id -u) CGO_ENABLED=0 GOWORK=off
for package in os os/exec os/signal syscall; do
    go test -short -count=1 -v -timeout 15m "$package" 2>&1 | sed -nE "s#^ *--- (PASS|FAIL|SKIP): ([^ ]+).*#RESULT $package \2: \1#p"
done
