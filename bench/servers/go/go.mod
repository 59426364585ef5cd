module deadheat/bench/servers

go 1.22
