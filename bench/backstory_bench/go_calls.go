// Makes calls from Go, for the experiment with go_calls.c (docs/design/guard.md).
//
//   - `go_calls loop COUNT` prints the processor time of an open and a close in ns.
//   - `go_calls stress COUNT` makes calls in 40 goroutines whose stacks grow, and executes programs.
//     Meanwhile garbage is collected without pause, and a signal comes each 0.1 ms.
//   - `go_calls profile COUNT FILE` writes a CPU profile of the loop.
package main

import "C" // The program is linked with libc, so that libraries can be preloaded.
import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func loop(count int) {
	for i := 0; i < count; i++ {
		file, err := syscall.Open("/etc/passwd", 0, 0)
		if err != nil {
			panic(err)
		}
		syscall.Close(file)
	}
}

func used() int64 {
	var usage syscall.Rusage
	syscall.Getrusage(0, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// deep makes calls below so many frames, and returns the depth.
func deep(frames int, above *[64]byte) int {
	var frame [64]byte
	frame[0] = above[0] + 1
	if frames == 0 {
		loop(3)
		return int(frame[0])
	}
	return deep(frames-1, &frame)
}

func disturb() {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for {
			syscall.Kill(os.Getpid(), syscall.SIGUSR1)
			time.Sleep(100 * time.Microsecond)
		}
	}()
	go func() {
		for {
			runtime.GC()
		}
	}()
}

func work(count int) {
	for i := 0; i < count; i++ {
		if deep(i%100, new([64]byte)) != i%100+1 {
			panic("a wrong depth")
		}
		if i%50 == 0 {
			out, err := exec.Command("/bin/echo", "x").Output()
			if err != nil || string(out) != "x\n" {
				panic(fmt.Sprint(err, out))
			}
		}
	}
}

func main() {
	count, _ := strconv.Atoi(os.Args[2])
	switch os.Args[1] {
	case "loop":
		loop(100)
		before := used()
		loop(count)
		fmt.Println((used() - before) / int64(count))
	case "stress":
		disturb()
		var all sync.WaitGroup
		for i := 0; i < 40; i++ {
			all.Add(1)
			go func() {
				defer all.Done()
				work(count)
			}()
		}
		all.Wait()
		fmt.Println("ok")
	case "profile":
		var out bytes.Buffer
		pprof.StartCPUProfile(&out)
		loop(count)
		pprof.StopCPUProfile()
		os.WriteFile(os.Args[3], out.Bytes(), 0o644)
	}
}
