"""zswap and ksm for a service whose memory does not suffice: on its core, a PCIe or a CXL device.

`ycsb` makes the operations, `server` has a real redis-server answer them and records it; `service`
is that record with the time of its instructions and misses, `costs` what each backend's work on a
page takes; `cells` simulates, `topic` reads rows and tables off.
"""
