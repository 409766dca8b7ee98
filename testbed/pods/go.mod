// What runs inside the pods of the testbed. Static programs that need nothing but a kernel.
module drover.io/testbed/pods

go 1.26.0
