"""``trainwatch rehearse``: a run is killed and resumed in a scratch folder before its night."""
