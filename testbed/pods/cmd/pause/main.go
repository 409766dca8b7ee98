// Command pause is the first process of a pod, and of a whole node of the testbed: it holds their
// namespaces, reaps what is orphaned to it, and does nothing else until it is told to end.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM)
	for {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 && err != syscall.EINTR {
				break
			}
		}
		if <-signals != syscall.SIGCHLD {
			return
		}
	}
}
