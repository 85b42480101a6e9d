"""The sparse vector technique: values compared with a noisy threshold."""
