module deadheat/bench/clients

go 1.21
