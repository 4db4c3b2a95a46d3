// Go code with a call path that is known (main.hot, through main.middle and main.work, on two goroutines), among work of the
// runtime: growing stacks, maps, garbage collection. Argument: seconds.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
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

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
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
