// Stand-ins of the clouds whose services of clusters have drivers in Drover.
module drover.io/testbed/clouds

go 1.26.0
