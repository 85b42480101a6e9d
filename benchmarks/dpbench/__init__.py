"""The protocol of DPBench (Hay, Machanavajjhala, Miklau, Chen, Zhang 2016) over made-up data of its shapes."""
