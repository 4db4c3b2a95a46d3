// Go code with a known call path (main.work, main.middle, main.hot, on two goroutines), besides work of the runtime:
// growing stacks, maps, garbage collection. Arguments: SECONDS [PROFILE]. With PROFILE the runtime also profiles the
// program, and writes the profile there when SIGTERM ends it.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:noinline
func hot(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += i * i % 7
	}
	return sum
}

//go:noinline
func middle(n int) int { return hot(n) + 1 }

//go:noinline
func deep(n int) int {
	var room [64]int
	room[n%64] = n
	if n == 0 {
		return room[0]
	}
	return deep(n-1) + room[n%64]
}

func work(end time.Time) int {
	sum := 0
	for time.Now().Before(end) {
		sum += middle(200000)
		words := make([]string, 0, 1000)
		for i := 0; i < 1000; i++ {
			words = append(words, fmt.Sprint(i*7919%1000))
		}
		sort.Strings(words)
		counts := map[string]int{}
		for _, word := range words {
			counts[strings.ToUpper(word)]++
		}
		done := make(chan int)
		go func() { done <- deep(60) }()
		sum += len(counts) + <-done
	}
	return sum
}

func profile(path string) {
	out, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	// More than the default of 100 samples per second. StartCPUProfile reports that it cannot set its own rate.
	runtime.SetCPUProfileRate(500)
	if err := pprof.StartCPUProfile(out); err != nil {
		panic(err)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	go func() {
		<-end
		pprof.StopCPUProfile()
		out.Close()
		os.Exit(0)
	}()
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	if len(os.Args) > 2 {
		profile(os.Args[2])
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	var workers sync.WaitGroup
	for i := 0; i < 2; i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			work(end)
		}()
	}
	workers.Wait()
}
