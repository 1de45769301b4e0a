// ProcEventMonitor of vishvananda/netlink. Prints `ready`. When its stdin ends, prints as JSON how
// many exits it reported and how late, except the first SKIPPED. Usage: netlink [SKIPPED].
package main

import (
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/vishvananda/netlink"
)

func nowNs() uint64 {
	var t syscall.Timespec
	const clockMonotonic = 1
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0)
	return uint64(t.Nano())
}

func main() {
	events := make(chan netlink.ProcEvent, 1024)
	errors := make(chan error, 1)
	if err := netlink.ProcEventMonitor(events, make(chan struct{}), errors); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	fmt.Println("ready")
	var lateUs []uint64
	failed := 0
	seen := 0
	skipped := 0
	if len(os.Args) > 1 {
		skipped, _ = strconv.Atoi(os.Args[1])
	}
	for {
		select {
		case event := <-events:
			exit, ok := event.Msg.(*netlink.ExitProcEvent)
			if !ok || exit.ProcessPid != exit.ProcessTgid {
				continue
			}
			if exit.ExitCode != 0 {
				failed++
			}
			seen++
			if skipped > 0 {
				skipped--
				continue
			}
			lateUs = append(lateUs, (nowNs()-event.Timestamp)/1000)
		case err := <-errors:
			fmt.Fprintln(os.Stderr, err)
		case <-ended:
			sort.Slice(lateUs, func(i, j int) bool { return lateUs[i] < lateUs[j] })
			p50, p99 := uint64(0), uint64(0)
			if len(lateUs) > 0 {
				p50, p99 = lateUs[len(lateUs)/2], lateUs[len(lateUs)*99/100]
			}
			fmt.Printf("{\"seen\":%d,\"failed\":%d,\"p50Us\":%d,\"p99Us\":%d}\n", seen, failed, p50, p99)
			return
		}
	}
}
