# what: go build, go vet and go test of a module that uses os, os/exec, signals and goroutines
# needs: go gcc
# limit: 240
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOCACHE=$HOME/cache CGO_ENABLED=0
cat >go.mod <<'G'
module m
go 1.19
G
cat >m.go <<'G'
package main
import ("fmt"; "os"; "os/exec"; "sync"; "syscall"; "os/signal")
func work(n int) string { os.WriteFile(fmt.Sprintf("g%d", n), []byte("x"), 0644); b, _ := os.ReadFile(fmt.Sprintf("g%d", n)); return string(b) }
func main() {
	var w sync.WaitGroup
	for i := 0; i < 100; i++ { w.Add(1); go func(n int) { defer w.Done(); if work(n) != "x" { fmt.Println("lost", n) } }(i) }
	w.Wait()
	out, err := exec.Command("sh", "-c", "echo from a shell; exit 4").CombinedOutput()
	fmt.Print(string(out)); fmt.Println(err)
	c := make(chan os.Signal, 1); signal.Notify(c, syscall.SIGUSR1); syscall.Kill(os.Getpid(), syscall.SIGUSR1); fmt.Println(<-c)
	_, err = os.Open("missing"); fmt.Println(err)
	os.MkdirAll("a/b/c", 0755); os.Rename("a/b", "a/z"); os.RemoveAll("a"); os.Exit(5)
}
G
cat >m_test.go <<'G'
package main
import "testing"
func TestWork(t *testing.T) { if work(1000) != "x" { t.Fatal("no") } }
G
go vet . && go build -trimpath -o m . && ./m; echo $?
go test -v . | grep -v '^ok'; CGO_ENABLED=1 go build -race -o race . 2>/dev/null; ls
rm -f m race
