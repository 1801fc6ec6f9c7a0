"""The default policy: built from scratch and warmed up by imitation, once per CUA_HOME."""
