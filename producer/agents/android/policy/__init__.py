"""The default policy: built from nothing and warmed up by imitation, once per CUA_HOME."""
