// Go that calls C, and C that calls back into Go. Argument: SECONDS
package main

// int into_c(int);
// int needs_every_register(int);
// int there_and_back(int);
import "C"

import (
	"os"
	"strconv"
	"time"
)

//export goes_on_in_go
func goes_on_in_go(n C.int) C.int {
	sum := C.int(0)
	for i := C.int(0); i < n; i++ {
		sum += i * i % 7
	}
	return sum
}

//go:noinline
func callsC(n int) int { return int(C.into_c(C.int(n))) }

//go:noinline
func callsLargeC(n int) int { return int(C.needs_every_register(C.int(n))) }

//go:noinline
func callsBack(n int) int { return int(C.there_and_back(C.int(n))) }

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	sum := 0
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		sum += callsC(100000) + callsLargeC(100000) + callsBack(2000)
	}
	if sum == 1 {
		println(sum)
	}
}
